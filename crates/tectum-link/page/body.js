// The drawing of the body: shapes in metres.

import { Surface, colour } from "./plot.js";

const COLOURS = {
  fixed: "fixed",
  driven: "observation",
  link: "action",
  joint: "text",
  goal: "goal",
};

export class Drawing {
  constructor(canvas) {
    this.surface = new Surface(canvas);
    this.drawing = null;
  }

  draw() {
    const { drawing } = this;
    const context = drawing && this.surface.begin();
    if (!context) return;
    const { width, height } = this.surface;
    const size = [drawing.max[0] - drawing.min[0], drawing.max[1] - drawing.min[1]];
    const scale = Math.min((width - 16) / size[0], (height - 16) / size[1]);
    const centre = [0, 1].map((axis) => (drawing.min[axis] + drawing.max[axis]) / 2);
    const x = (value) => width / 2 + (value - centre[0]) * scale;
    const y = (value) => height / 2 - (value - centre[1]) * scale;
    for (const shape of drawing.shapes) {
      context.fillStyle = context.strokeStyle = colour(COLOURS[shape.role] ?? "text");
      context.beginPath();
      if (shape.shape === "line") {
        context.lineCap = "round";
        context.lineWidth = Math.max(1.5, shape.width_m * scale);
        context.moveTo(x(shape.from[0]), y(shape.from[1]));
        context.lineTo(x(shape.to[0]), y(shape.to[1]));
        context.stroke();
      } else if (shape.shape === "disc") {
        const radius = Math.max(2, shape.radius_m * scale);
        context.arc(x(shape.center[0]), y(shape.center[1]), radius, 0, 2 * Math.PI);
        context.fill();
      } else {
        const [across, up] = shape.size_m.map((side) => side * scale);
        context.fillRect(x(shape.center[0]) - across / 2, y(shape.center[1]) - up / 2, across, up);
      }
    }
  }
}
