// Canvases in device pixels, colours of the theme, and ticks.

let colours = null;

/** A colour of the style sheet. */
export function colour(name) {
  colours ??= getComputedStyle(document.documentElement);
  return colours.getPropertyValue(`--${name}`).trim();
}

/** Has colours read again, after another theme was chosen. */
export function forgetColours() {
  colours = null;
}

/** A canvas that knows its size, and whether it can be seen. */
export class Surface {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.isVisible = true;
    new ResizeObserver(([entry]) => this.#resize(entry.contentRect)).observe(canvas);
    new IntersectionObserver(([entry]) => {
      this.isVisible = entry.isIntersecting;
      window.dispatchEvent(new Event("surface"));
    }, { rootMargin: "200px" }).observe(canvas);
    this.#resize(canvas.getBoundingClientRect());
  }

  /** Clears it; returns its context, in pixels of the style sheet, or nothing if no one sees it. */
  begin() {
    if (!this.isVisible || this.width < 2 || this.height < 2) return null;
    const { context, scale } = this;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    context.setLineDash([]);
    context.lineWidth = 1;
    return context;
  }

  #resize({ width, height }) {
    this.width = width;
    this.height = height;
    this.scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(width * this.scale));
    this.canvas.height = Math.max(1, Math.round(height * this.scale));
    window.dispatchEvent(new Event("surface"));
  }
}

/** Round numbers in a range, about `count` of them, and at least `min`. */
export function ticks(low, high, count, min = 1) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((part) => part * power).find((size) => size >= raw);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let place = first; place * step <= high + step * 1e-9; place++) {
    found.push(Number((place * step).toPrecision(12)));
  }
  return found.length < min && count < 12 ? ticks(low, high, count + 1, min) : found;
}

/** Powers of ten in a range. */
export function decades(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high * 1.0001; power++) {
    found.push(Number((10 ** power).toPrecision(3)));
  }
  return found;
}

/** A tick in few characters. */
export function tickText(value) {
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e5 || size < 1e-3)
    ? value.toExponential(0)
    : String(Number(value.toPrecision(6)));
  return text.replace("-", "−").replace("e+", "e");
}
