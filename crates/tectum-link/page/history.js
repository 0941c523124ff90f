// The last frames of a stream, by column. docs/watch.md has the format of a batch.

const HEAD_WORDS = 4;
const FRAME_WORDS = 5;
const CAPACITY = 8192;

/** What happened in a step, as bits of a frame's marks. */
export const MARKS = { missed: 1, held: 2, fallback: 4, episode: 8 };

/** The number of the stream that a batch belongs to. */
export function streamOf(words) {
  return words[1];
}

export class History {
  constructor(spec) {
    this.spec = spec;
    this.start = 0;
    this.count = 0;
    this.leftOut = 0;
    this.rasterRows = spec.raster.reduce((sum, area) => sum + area.rows, 0);
    this.rasterWords = Math.ceil(this.rasterRows / 32);
    this.step = new Float64Array(CAPACITY);
    this.time = new Float64Array(CAPACITY);
    this.marks = new Uint32Array(CAPACITY);
    this.values = spec.series.map(() => new Float32Array(CAPACITY));
    this.raster = new Uint32Array(CAPACITY * this.rasterWords);
  }

  /** Adds the frames of a batch. */
  add(words) {
    const width = words[2];
    this.leftOut += words[3];
    const numbers = new Float32Array(words.buffer, words.byteOffset, words.length);
    const series = this.values.length;
    for (let at = HEAD_WORDS; at + width <= words.length; at += width) {
      const place = this.#next();
      this.step[place] = words[at] + words[at + 1] * 2 ** 32;
      this.time[place] = (words[at + 2] + words[at + 3] * 2 ** 32) / 1e9;
      this.marks[place] = words[at + 4];
      const first = at + FRAME_WORDS;
      for (let column = 0; column < series; column++) {
        this.values[column][place] = numbers[first + column];
      }
      const bits = words.subarray(first + series, first + series + this.rasterWords);
      this.raster.set(bits, place * this.rasterWords);
    }
  }

  /** The place of a frame, from the oldest. */
  place(index) {
    return (this.start + index) % CAPACITY;
  }

  /** The time of the oldest frame; NaN without one. */
  get first() {
    return this.count ? this.time[this.place(0)] : NaN;
  }

  /** The time of the latest frame; NaN without one. */
  get last() {
    return this.count ? this.time[this.place(this.count - 1)] : NaN;
  }

  /** The first frame at or after a time, as an index from the oldest. */
  from(time) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[this.place(middle)] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The last value of a series at or before a time that is a number. */
  valueAt(column, time) {
    for (let index = this.from(time + 1e-9) - 1; index >= 0; index--) {
      const value = this.values[column][this.place(index)];
      if (!Number.isNaN(value)) return value;
    }
    return NaN;
  }

  #next() {
    if (this.count < CAPACITY) return this.place(this.count++);
    this.start = (this.start + 1) % CAPACITY;
    return this.place(CAPACITY - 1);
  }
}
