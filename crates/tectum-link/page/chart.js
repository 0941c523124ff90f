// A curve over time, with limits, marks and a cursor.

import { number, quantity } from "./format.js";
import { MARKS } from "./history.js";
import { Surface, colour, decades, tickText, ticks } from "./plot.js";

const LEFT = 46;
const BOTTOM = 16;
const TOP = 10;
const RIGHT = 6;
/** How often the text for screen readers changes. */
const LABEL_MS = 2000;

export class Chart {
  constructor(history, column, onHover) {
    this.history = history;
    this.column = column;
    this.series = history.spec.series[column];
    this.isLogarithmic = this.series.group === "timing";
    this.labelled = 0;
    this.#build();
    this.canvas.addEventListener("pointermove", (event) => {
      const share = (event.offsetX - LEFT) / (this.surface.width - LEFT - RIGHT);
      onHover(Math.min(1, Math.max(0, share)));
    });
    this.canvas.addEventListener("pointerleave", () => onHover(1));
  }

  #build() {
    const { name, unit, low, high } = this.series;
    this.element = document.createElement("figure");
    this.element.className = "chart";
    this.element.dataset.series = name;
    const caption = document.createElement("figcaption");
    const title = span("name", name);
    this.value = span("value", "–");
    caption.append(title, this.value);
    if (this.isLogarithmic && high !== null) {
      caption.append(span("limits", `period ${quantity(high, unit)}`));
    } else if (low !== null && high !== null) {
      caption.append(span("limits", `limits ${number(low)} to ${quantity(high, unit)}`));
    }
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Curve of ${name}`);
    this.element.append(caption, this.canvas);
    this.surface = new Surface(this.canvas);
  }

  /** Draws `[from, to]` with the cursor at a time; `isFit` for the range of the data alone. */
  draw({ from, to, cursor, isFit }) {
    const { history, column, series } = this;
    const now = history.valueAt(column, cursor);
    const text = quantity(now, series.unit);
    if (this.value.textContent !== text) this.value.textContent = text;
    this.#label(text);
    const context = this.surface.begin();
    if (!context) return;
    const { width, height } = this.surface;
    const area = { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
    const first = Math.max(0, history.from(from) - 1);
    const range = this.#range(first, isFit);
    const x = (time) => area.left + ((time - from) / (to - from)) * (area.right - area.left);
    const y = (value) => {
      const share = this.isLogarithmic
        ? Math.log(Math.max(value, range.low) / range.low) / Math.log(range.high / range.low)
        : (value - range.low) / (range.high - range.low);
      return area.bottom - share * (area.bottom - area.top);
    };
    this.#frame(context, area, range, { from, to }, x, y);
    context.save();
    context.beginPath();
    context.rect(area.left, area.top - 1, area.right - area.left, area.bottom - area.top + 2);
    context.clip();
    this.#limits(context, area, y);
    this.#curve(context, first, x, y);
    context.restore();
    this.#marks(context, area, first, x);
    if (cursor < to) {
      context.strokeStyle = colour("quiet");
      context.beginPath();
      context.moveTo(x(cursor), area.top);
      context.lineTo(x(cursor), area.bottom);
      context.stroke();
    }
  }

  /** The range of the axis: of the data, and of the limits unless only the data counts. */
  #range(first, isFit) {
    const { history, column } = this;
    let low = Infinity;
    let high = -Infinity;
    for (let index = first; index < history.count; index++) {
      const value = history.values[column][history.place(index)];
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (this.isLogarithmic) return this.#decadesAround(low, high, isFit);
    if (!isFit) {
      if (this.series.low !== null) low = Math.min(low, this.series.low);
      if (this.series.high !== null) high = Math.max(high, this.series.high);
    }
    if (!(low <= high)) [low, high] = [0, 1];
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    return { low: low - margin, high: high + margin };
  }

  #decadesAround(low, high, isFit) {
    const limit = this.series.high;
    if (!(high > 0)) high = 1;
    if (!(low > 0 && low <= high)) low = high / 100;
    if (!isFit && limit !== null) high = Math.max(high, limit);
    return { low: low / 1.5, high: Math.max(high * 1.5, low * 10) };
  }

  #frame(context, area, range, { from, to }, x, y) {
    context.strokeStyle = colour("grid");
    context.fillStyle = colour("quiet");
    context.textAlign = "right";
    context.textBaseline = "middle";
    const heights = this.isLogarithmic
      ? thinned(decades(range.low, range.high), 4)
      : ticks(range.low, range.high, 3, 2);
    for (const tick of heights) {
      line(context, area.left, y(tick), area.right, y(tick));
      context.fillText(tickText(tick), area.left - 5, y(tick));
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const tick of ticks(from, to, Math.max(2, (area.right - area.left) / 70))) {
      if (tick < 0) continue;
      line(context, x(tick), area.top, x(tick), area.bottom);
      const text = `${tickText(tick)} s`;
      const half = context.measureText(text).width / 2;
      const middle = Math.min(area.right - half, Math.max(area.left + half, x(tick)));
      context.fillText(text, middle, area.bottom + 3);
    }
  }

  /** What is beyond the limits is shaded, and each limit is a line. */
  #limits(context, area, y) {
    const { low, high } = this.series;
    const edges = [];
    if (high !== null) edges.push([y(high), area.top - 1]);
    if (low !== null && !this.isLogarithmic) edges.push([y(low), area.bottom + 1]);
    for (const [edge, end] of edges) {
      context.fillStyle = colour("limit");
      context.fillRect(area.left, Math.min(edge, end), area.right - area.left, Math.abs(end - edge));
      context.strokeStyle = colour("fallback");
      context.setLineDash([4, 3]);
      line(context, area.left, edge, area.right, edge);
      context.setLineDash([]);
    }
  }

  /** A column of pixels with many frames gets their lowest and highest value. */
  #curve(context, first, x, y) {
    const { history, column, series } = this;
    const values = history.values[column];
    context.strokeStyle = colour(series.group);
    context.lineWidth = 1.5;
    context.lineJoin = "round";
    context.beginPath();
    let isOpen = false;
    let pixel = -1;
    let low = 0;
    let high = 0;
    let last = 0;
    const close = () => {
      if (low !== high) {
        context.lineTo(pixel, y(low));
        context.lineTo(pixel, y(high));
      }
      context.lineTo(pixel, y(last));
    };
    for (let index = first; index < history.count; index++) {
      const place = history.place(index);
      const value = values[place];
      if (Number.isNaN(value)) continue;
      const here = Math.round(x(history.time[place]) * 2) / 2;
      if (isOpen && here === pixel) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      } else {
        if (isOpen) close();
        else context.moveTo(here, y(value));
        isOpen = true;
        pixel = here;
        low = high = value;
      }
      last = value;
      if (history.marks[place] & MARKS.episode) {
        close();
        isOpen = false;
      }
    }
    if (isOpen) close();
    context.stroke();
  }

  #marks(context, area, first, x) {
    const { history } = this;
    const drawn = { missed: -9, fallback: -9, episode: -9 };
    for (let index = first; index < history.count; index++) {
      const place = history.place(index);
      const marks = history.marks[place];
      if (!marks) continue;
      const at = x(history.time[place]);
      if (at < area.left || at > area.right) continue;
      for (const kind of Object.keys(drawn)) {
        if (marks & MARKS[kind] && at - drawn[kind] > 3) {
          drawn[kind] = at;
          mark(context, kind, at, area);
        }
      }
    }
  }

  #label(text) {
    const now = performance.now();
    if (now - this.labelled < LABEL_MS) return;
    this.labelled = now;
    this.canvas.setAttribute("aria-label", `Curve of ${this.series.name}, now ${text}`);
  }
}

function mark(context, kind, at, area) {
  context.fillStyle = colour(kind);
  if (kind === "missed") {
    context.beginPath();
    context.moveTo(at - 4, 1);
    context.lineTo(at + 4, 1);
    context.lineTo(at, 8);
    context.fill();
  } else if (kind === "fallback") {
    context.fillRect(at - 3, 2, 6, 6);
  } else {
    context.strokeStyle = colour("episode");
    context.setLineDash([3, 2]);
    line(context, at, area.top, at, area.bottom);
    context.setLineDash([]);
  }
}

function line(context, fromX, fromY, toX, toY) {
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
}

/** At most so many of a list, at equal distances. */
function thinned(list, count) {
  const step = Math.ceil(list.length / count);
  return list.filter((_, place) => place % step === 0);
}

function span(name, text) {
  const element = document.createElement("span");
  element.className = name;
  element.textContent = text;
  return element;
}

/** The counts of durations in buckets, as bars over a logarithmic axis. */
export class Bins {
  constructor(figure) {
    this.figure = figure;
    this.surface = new Surface(figure.querySelector("canvas"));
  }

  /** Draws `[upper bound in seconds, count]`; the last bound is null. */
  draw(buckets) {
    const context = this.surface.begin();
    if (!context || !buckets) return;
    const { width, height } = this.surface;
    const [left, right, top, bottom] = [LEFT, width - RIGHT, TOP, height - BOTTOM];
    const highest = Math.max(1, ...buckets.map(([, count]) => count));
    const step = (right - left) / buckets.length;
    context.textBaseline = "top";
    context.textAlign = "center";
    buckets.forEach(([bound, count], place) => {
      const x = left + place * step;
      const size = count ? Math.max(2, (count / highest) * (bottom - top)) : 0;
      context.fillStyle = colour("timing");
      context.fillRect(x + 1, bottom - size, step - 2, size);
      const isDecade = bound !== null && Number.isInteger(Math.round(Math.log10(bound) * 1e6) / 1e6);
      if (!isDecade) return;
      context.strokeStyle = colour("grid");
      line(context, x + step, top, x + step, bottom);
      context.fillStyle = colour("quiet");
      context.fillText(duration(bound), x + step, bottom + 3);
    });
    context.strokeStyle = colour("line");
    line(context, left, bottom, right, bottom);
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = colour("quiet");
    context.fillText(compact(highest), left - 5, top + 4);
    context.fillText("0", left - 5, bottom - 2);
  }
}

function compact(count) {
  return count.toLocaleString("en", { notation: "compact" });
}

function duration(seconds) {
  if (seconds >= 1) return `${seconds} s`;
  return seconds >= 1e-3 ? `${Math.round(seconds * 1e3)} ms` : `${Math.round(seconds * 1e6)} µs`;
}
