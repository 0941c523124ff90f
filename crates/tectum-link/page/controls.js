// Buttons that steer the run, and the view.

import { forgetColours } from "./plot.js";

const THEME = "tectum.theme";
const $ = (id) => document.getElementById(id);

export class Controls {
  constructor(send) {
    this.send = send;
    this.isPaused = false;
    this.#steer();
    this.#view();
    this.#ask();
  }

  /** What a run allows: under a real clock only the stop. */
  allow({ isSimulated, hasEnded }) {
    for (const id of ["pause", "step", "speed"]) $(id).disabled = !isSimulated || hasEnded;
    $("stop").disabled = hasEnded;
    $("stop").textContent = isSimulated ? "Stop" : "Stop: safe action";
  }

  /** Shows the state of the run. */
  show({ paused, speed }) {
    this.isPaused = paused;
    $("pause").textContent = paused ? "Continue" : "Pause";
    const select = $("speed");
    if (document.activeElement === select) return;
    const text = speed === null ? "" : String(speed);
    if (![...select.options].some((option) => option.value === text)) {
      select.add(new Option(`${text} ×`, text));
    }
    select.value = text;
  }

  /** A message for the user; none if empty. */
  note(text) {
    $("note").textContent = text;
    $("note").hidden = !text;
  }

  /** The token, from the user. */
  ask() {
    if (!$("ask").open) $("ask").showModal();
  }

  #steer() {
    $("pause").addEventListener("click", () => {
      this.send({ type: this.isPaused ? "continue" : "pause" });
    });
    $("step").addEventListener("click", () => this.send({ type: "step" }));
    $("stop").addEventListener("click", () => this.send({ type: "stop" }));
    $("speed").addEventListener("change", ({ target }) => {
      const speed = target.value === "" ? null : Number(target.value);
      this.send({ type: "speed", speed });
    });
  }

  #view() {
    this.window = Number($("window").value);
    this.isFit = false;
    this.share = 1;
    $("window").addEventListener("change", ({ target }) => { this.window = Number(target.value); });
    $("fit").addEventListener("change", ({ target }) => { this.isFit = target.checked; });
    $("cursor").addEventListener("input", ({ target }) => { this.share = target.value / 1000; });
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.#theme(localStorage.getItem(THEME) ?? (isDark ? "dark" : "light"));
    $("theme").addEventListener("click", () => {
      const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      localStorage.setItem(THEME, next);
      this.#theme(next);
    });
  }

  #theme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").setAttribute("aria-pressed", String(name === "dark"));
    forgetColours();
  }

  #ask() {
    $("ask-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send({ type: "token", token: $("token").value });
      $("token").value = "";
      $("ask").close();
    });
  }
}
