// The page: what arrives is kept, and drawn before the next picture of the screen.

import { Drawing } from "./body.js";
import { Bins, Chart } from "./chart.js";
import { Controls } from "./controls.js";
import { Feed } from "./feed.js";
import { number, quantity, terms, words } from "./format.js";
import { History, streamOf } from "./history.js";
import { Raster } from "./raster.js";

const $ = (id) => document.getElementById(id);
const GROUPS = ["observation", "action", "task", "timing", "rate"];
/** Charts of a group that are shown at once; a button shows the others. */
const MAX_CHARTS = 12;
const MAX_EVENTS = 200;

const view = {
  run: null,
  state: null,
  histories: [],
  charts: [],
  raster: null,
  hasEnded: false,
  hover: null,
  isDirty: true,
};

const drawing = new Drawing($("drawing"));
const bins = new Bins($("bins"));
const controls = new Controls((order) => feed.send(order));
const feed = new Feed({
  run: begin,
  frames: (words) => {
    view.histories[streamOf(words)]?.add(words);
    view.isDirty = true;
  },
  event: ({ event }) => addEvent(event),
  drawing: (message) => {
    drawing.drawing = message.drawing;
    $("body").hidden = false;
  },
  state: (message) => {
    view.state = message;
    controls.show(message);
    showState();
    showNumbers();
  },
  lost: ({ batches }) => controls.note(`This page was too slow and lost ${batches} batches.`),
  refused: ({ reason }) => controls.note(reason),
  token: () => controls.ask(),
  end: ({ summary, receipt }) => {
    view.hasEnded = true;
    showReceipt(receipt);
    showSummary(summary);
    controls.allow({ isSimulated: view.run.is_simulated, hasEnded: true });
    showState();
  },
  closed: (hasEnded, reason) => {
    if (hasEnded) return;
    if (reason) controls.note(reason);
    view.state = null;
    showState("disconnected");
  },
});

function begin(run) {
  Object.assign(view, { run, histories: [], charts: [], raster: null, hasEnded: false });
  document.querySelectorAll(".charts .chart:not(#bins), .charts .more").forEach((old) => old.remove());
  $("event-rows").replaceChildren(emptyRow());
  GROUPS.forEach((group) => { $(group).hidden = true; });
  for (const id of ["raster", "summary", "body"]) $(id).hidden = true;
  document.title = `${run.about.title} – Tectum`;
  $("title").textContent = run.about.title;
  controls.note("");
  controls.allow({ isSimulated: run.is_simulated, hasEnded: false });
  view.histories = run.streams.map((spec) => new History(spec));
  view.histories.forEach(addCharts);
  showReceipt(run.about.receipt);
}

function addCharts(history) {
  const counts = {};
  history.spec.series.forEach((series, column) => {
    const section = $(series.group);
    const chart = new Chart(history, column, (share) => { view.hover = share < 1 ? share : null; });
    counts[series.group] = (counts[series.group] ?? 0) + 1;
    chart.element.hidden = counts[series.group] > MAX_CHARTS;
    section.append(chart.element);
    section.hidden = false;
    view.charts.push(chart);
  });
  for (const [group, count] of Object.entries(counts)) {
    if (count > MAX_CHARTS) $(group).append(more($(group), count));
  }
  if ($("timing").hidden === false) $("timing").append($("bins"));
  if (history.rasterRows > 0) {
    $("raster").hidden = false;
    view.raster = new Raster($("raster").querySelector("canvas"), history);
  }
}

/** A button for the charts of a section that are not shown. */
function more(section, count) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "more";
  button.textContent = `Show all ${count}`;
  button.addEventListener("click", () => {
    section.querySelectorAll(".chart").forEach((chart) => { chart.hidden = false; });
    button.remove();
  });
  return button;
}

function showState(text) {
  const { state, run } = view;
  const waiting = run && !view.histories.some((history) => history.count) ? "waiting" : "running";
  const present = state?.stopped ? "stopped" : state?.paused ? "paused" : waiting;
  const shown = text ?? (view.hasEnded ? "ended" : present);
  if ($("state").textContent !== shown) $("state").textContent = shown;
  $("state").dataset.state = shown;
}

function showNumbers() {
  const { state, run } = view;
  if (!state || !run) return;
  const rows = Object.entries(state.quantities).map(([name, value]) => [words(name), number(value)]);
  if (run.about.steps) rows.push(["steps in all", number(run.about.steps)]);
  rows.push(["viewers", number(state.viewers)]);
  if (state.dropped_frames) rows.push(["dropped frames", number(state.dropped_frames)]);
  terms($("numbers"), rows);
  bins.draw(state.histograms.tick_duration);
}

function showReceipt(receipt) {
  if (!receipt) return;
  const device = receipt.device ?? {};
  const rows = [
    ["device", [device.id, device.name].filter(Boolean).join(": ")],
    ["version", receipt.tectum],
    ["runs counted", number(receipt.runs)],
    ["code objects", number(receipt.code?.length)],
    ["recoveries", number(receipt.recovery_count)],
  ];
  if (receipt.trace) rows.push(["trace", receipt.trace]);
  terms($("proof"), rows.filter(([, text]) => text));
  $("receipt-text").textContent = JSON.stringify(receipt, null, 2);
}

function showSummary(summary) {
  if (!summary) return;
  const rows = Object.entries(summary).flatMap(([key, value]) => {
    if (typeof value === "number") return [[words(key), number(value)]];
    if (typeof value === "string") return [[words(key), value]];
    if (value && typeof value === "object" && "p50" in value) {
      const { p50, p99, max } = value;
      return [[words(key), `p50 ${quantity(p50)}, p99 ${quantity(p99)}, max ${quantity(max)}`]];
    }
    return [];
  });
  terms($("results"), rows);
  $("summary").hidden = false;
}

function addEvent({ time_s: time, step, kind, text }) {
  const rows = $("event-rows");
  rows.querySelector(".empty")?.remove();
  const row = document.createElement("tr");
  for (const cell of [`${time.toFixed(3)} s`, kind, text]) {
    row.append(Object.assign(document.createElement("td"), { textContent: cell }));
  }
  row.title = `step ${step}`;
  rows.prepend(row);
  while (rows.children.length > MAX_EVENTS) rows.lastElementChild.remove();
}

function emptyRow() {
  const row = document.createElement("tr");
  row.className = "empty";
  row.append(Object.assign(document.createElement("td"), { textContent: "none so far", colSpan: 3 }));
  return row;
}

/** The shown times: the last seconds, and of them the moment of the cursor. */
function times() {
  const shown = view.histories.filter((history) => history.count);
  const first = Math.min(...shown.map((history) => history.first));
  const last = Math.max(...shown.map((history) => history.last));
  // The first seconds fill an empty window from its left edge.
  const to = shown.length ? Math.max(last, first + controls.window) : controls.window;
  const from = to - controls.window;
  const share = view.hover ?? controls.share;
  const cursor = from + share * controls.window;
  const text = share < 1 ? `${number(cursor)} s` : "latest";
  if ($("cursor").getAttribute("aria-valuetext") !== text) {
    $("cursor").setAttribute("aria-valuetext", text);
  }
  return { from, to, cursor, isFit: controls.isFit };
}

function draw() {
  requestAnimationFrame(draw);
  if (!view.run || document.hidden) return;
  const shown = times();
  // What is shown depends on frames, the cursor, the view, the theme and the size.
  const key = JSON.stringify([shown, document.documentElement.dataset.theme, innerWidth]);
  if (!view.isDirty && key === view.key) return;
  Object.assign(view, { isDirty: false, key });
  view.charts.forEach((chart) => chart.draw(shown));
  view.raster?.draw(shown);
  drawing.draw();
  if (view.state) bins.draw(view.state.histograms.tick_duration);
  showState(view.state ? undefined : "disconnected");
}

window.addEventListener("surface", () => { view.isDirty = true; });
requestAnimationFrame(draw);
