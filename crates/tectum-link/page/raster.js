// Firings of neurons: a row for each that is shown, a column for each moment.

import { Surface, colour, tickText, ticks } from "./plot.js";

const MAX_LEFT = 92;
const BOTTOM = 18;
const TOP = 4;
const RIGHT = 6;

export class Raster {
  constructor(canvas, history) {
    this.history = history;
    this.surface = new Surface(canvas);
    this.cells = document.createElement("canvas");
    const areas = history.spec.raster.map((area) => area.name).join(", ");
    canvas.setAttribute("aria-label", `Raster of firings of ${history.rasterRows} neurons: ${areas}`);
  }

  draw({ from, to, cursor }) {
    const context = this.surface.begin();
    if (!context) return;
    const { history } = this;
    const { width, height } = this.surface;
    const names = history.spec.raster.map(({ name }) => context.measureText(name).width);
    const left = Math.min(MAX_LEFT, 12 + Math.max(...names));
    const area = { left, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
    const x = (time) => area.left + ((time - from) / (to - from)) * (area.right - area.left);
    this.#areas(context, area);
    this.#cells(from, to, Math.max(1, Math.floor(area.right - area.left)));
    context.imageSmoothingEnabled = false;
    context.drawImage(this.cells, area.left, area.top, area.right - area.left, area.bottom - area.top);
    context.fillStyle = colour("quiet");
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const tick of ticks(from, to, Math.max(2, (area.right - area.left) / 70))) {
      if (tick < 0) continue;
      const text = `${tickText(tick)} s`;
      const half = context.measureText(text).width / 2;
      const middle = Math.min(area.right - half, Math.max(area.left + half, x(tick)));
      context.fillText(text, middle, area.bottom + 3);
    }
    if (cursor < to) {
      context.fillRect(x(cursor), area.top, 1, area.bottom - area.top);
    }
  }

  /** Names, and a line above each area. */
  #areas(context, area) {
    const { spec, rasterRows } = this.history;
    const rowHeight = (area.bottom - area.top) / rasterRows;
    context.textAlign = "right";
    context.textBaseline = "middle";
    let row = 0;
    let free = -Infinity;
    spec.raster.forEach((rows, place) => {
      const top = area.top + row * rowHeight;
      const size = rows.rows * rowHeight;
      if (place % 2) {
        context.fillStyle = colour("grid");
        context.fillRect(area.left, top, area.right - area.left, size);
      }
      const middle = top + size / 2;
      // Names that would overlap are left out; the rates below have all.
      if (middle - free >= 13) {
        context.fillStyle = colour("quiet");
        context.fillText(shortened(context, rows.name, MAX_LEFT - 12), area.left - 6, middle);
        free = middle;
      }
      row += rows.rows;
    });
  }

  /** One pixel for each row and column. */
  #cells(from, to, columns) {
    const { history } = this;
    const { rasterRows: rows, rasterWords: words } = history;
    this.cells.width = columns;
    this.cells.height = rows;
    const context = this.cells.getContext("2d");
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = [packed(colour("rate")), packed(colour("action"))];
    const colourOf = this.#colourOfRows();
    for (let index = history.from(from); index < history.count; index++) {
      const place = history.place(index);
      const share = (history.time[place] - from) / (to - from);
      const column = Math.min(columns - 1, Math.floor(share * columns));
      for (let word = 0; word < words; word++) {
        let bits = history.raster[place * words + word];
        while (bits) {
          const bit = 31 - Math.clz32(bits);
          bits &= ~(1 << bit);
          const row = word * 32 + bit;
          pixels[row * columns + column] = colours[colourOf[row]];
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  #colourOfRows() {
    this.colourOf ??= this.history.spec.raster.flatMap((rows, place) => Array(rows.rows).fill(place % 2));
    return this.colourOf;
  }
}

/** A colour `#rrggbb` as a pixel. */
function packed(text) {
  const value = Number.parseInt(text.slice(1), 16);
  const [red, green, blue] = [value >> 16, (value >> 8) & 255, value & 255];
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}

function shortened(context, text, width) {
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > width) {
    shown = `${shown.slice(0, -2)}…`;
  }
  return shown;
}
