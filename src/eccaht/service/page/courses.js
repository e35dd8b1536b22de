// @ts-check
/** The chart of a plant with what steers it: the stretch of time, its zoom and the sensors that are drawn. */

import { plantPath } from "./api.js";
import { Chart } from "./charts.js";
import { fill, h, throttled } from "./dom.js";
import { lineTitle } from "./figure.js";
import { milliseconds, moment, wall } from "./format.js";
import { reason } from "./parts.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Evidence} Evidence */
/** @typedef {import("./types.js").Series} Series */
/** @typedef {import("./types.js").Suspect} Suspect */
/** @typedef {[string, string]} Range */

const POINTS = 600;
const MOST_SUSPECTS = 6;
const DRAWN = 0.1; // belief of a suspect that is drawn unasked
const MOST_LINES = 10;
const REDRAW = 2000;
const RELOAD = 5000;

export class Courses {
  /**
   * @param {Context} context
   * @param {string} plant
   * @param {object} options
   * @param {() => Range | null} options.home what is shown until the user zooms; moves on as windows come
   * @param {() => boolean} options.live whether it does
   * @param {string} options.back the word for going back there
   * @param {import("./dom.js").Child} [options.tools] more controls
   */
  constructor(context, plant, { home, live, back, tools }) {
    this.context = context;
    this.plant = plant;
    this.home = home;
    this.live = live;
    /** @type {Range | null} */
    this.zoomed = null;
    /** @type {string[]} */
    this.sensors = [];
    /** @type {Suspect[]} */
    this.suspects = [];
    /** @type {string[]} */
    this.chosen = [];
    /** @type {{time: string, text: string}[]} */
    this.marks = [];
    /** The last answer and the windows that came after it. @type {Evidence} */
    this.evidence = { time: [], evidence: [], state: [], threshold: 0 };
    /** Up to when the last answer reaches, in milliseconds. */
    this.until = -Infinity;
    /** @type {Series | null} */
    this.series = null;
    this.asked = "";
    this.turn = this.drawn = 0;
    this.chart = new Chart((range) => this.zoom(range));
    this.back = h("button", { type: "button", hidden: true, click: () => this.zoom(null) }, back);
    this.add = h("select", { "aria-label": "Draw a sensor", change: () => this.#choose(this.add.value) });
    this.chips = h("span", { class: "chips" });
    this.waiting = h("p", { class: "nothing", hidden: true }, "Drawn once the first window is complete.");
    this.problem = h("p", { class: "problem", role: "status", hidden: true });
    this.legend = h("p", { class: "legend" });
    this.element = h(
      "div",
      {},
      h("div", { class: "tools" }, tools, this.#steps(), this.back, this.add, this.chips),
      this.problem,
      this.waiting,
      this.chart.element,
      this.legend,
    );
    this.redraw = throttled(() => this.#draw(), REDRAW);
    this.reload = throttled(
      () => this.#load(),
      () => Math.max(RELOAD, this.#visible()),
    );
    this.catchUp = throttled(() => this.#load(), RELOAD);
  }

  /**
   * What the plant says now.
   * @param {{sensors: string[], suspects: Suspect[], marks: {time: string, text: string}[]}} now
   */
  update({ sensors, suspects, marks }) {
    this.suspects = suspects.filter((one) => (one.belief ?? 1) >= DRAWN).slice(0, MOST_SUSPECTS);
    this.marks = marks;
    if (sensors.join() !== this.sensors.join()) {
      this.sensors = sensors;
      fill(
        this.add,
        h("option", { value: "" }, "Draw a sensor…"),
        sensors.map((name) => h("option", { value: name }, name)),
      );
    }
    if (this.#question() !== this.asked) void this.#load();
    else this.redraw();
  }

  /**
   * A window has come: its evidence is drawn at once, the readings when they are asked for next.
   * @param {import("./types.js").WindowMessage} message
   */
  take(message) {
    const { time, evidence, state } = message;
    if (this.zoomed || !this.live()) return;
    if (!extend(this.evidence, { time: [time], evidence: [evidence], state: [state] })) return;
    this.redraw();
    if (milliseconds(time) - this.until > this.#visible()) this.catchUp();
    else this.reload();
  }

  /** @param {Range | null} range */
  zoom(range) {
    this.zoomed = range;
    this.back.hidden = range === null;
    void this.#load();
  }

  /** Load what is drawn once more. */
  refresh() {
    void this.#load();
  }

  close() {
    this.redraw.stop();
    this.reload.stop();
    this.catchUp.stop();
    void this.chart.close();
  }

  /**
   * Draw a sensor.
   * @param {string} sensor
   */
  draw(sensor) {
    this.#choose(sensor);
    this.element.scrollIntoView({ behavior: "smooth", block: "nearest" });
  }

  /** The sensors that are drawn. */
  lines() {
    return [...new Set([...this.suspects.map((suspect) => suspect.sensor), ...this.chosen])].slice(0, MOST_LINES);
  }

  #range() {
    return this.zoomed ?? this.home();
  }

  /** The milliseconds of the plant that are a step to be seen in the chart. */
  #visible() {
    const range = this.#range();
    return range ? (milliseconds(range[1]) - milliseconds(range[0])) / 300 : 0;
  }

  #question() {
    return JSON.stringify([this.lines(), this.zoomed, this.marks.map((mark) => mark.text)]);
  }

  async #load() {
    const range = this.#range();
    this.waiting.hidden = range !== null;
    this.chart.element.hidden = range === null;
    if (!range) return;
    const question = this.#question();
    this.asked = question;
    const turn = ++this.turn;
    const { api } = this.context;
    const toNow = !this.zoomed && this.live(); // windows may be stored that this page has not heard of
    const query = { start: wall(range[0]), stop: toNow ? null : wall(range[1]), points: POINTS };
    const lines = this.lines();
    fill(this.legend, legend(lines.length > 0));
    try {
      const [evidence, series] = await Promise.all([
        api.get(plantPath(this.plant, "evidence"), query),
        lines.length ? api.get(plantPath(this.plant, "series"), { ...query, sensor: lines }) : null,
      ]);
      if (question !== this.asked || turn < this.drawn) return;
      this.drawn = turn;
      this.until = newest(evidence);
      if (toNow) extend(evidence, this.evidence); // by windows that came while the answer was on its way
      [this.evidence, this.series] = [evidence, series];
      this.problem.hidden = true;
    } catch (error) {
      if (question !== this.asked || turn < this.drawn) return;
      fill(this.problem, `The curves could not be loaded: ${reason(error)}`);
      this.problem.hidden = false;
      return;
    }
    await this.#draw();
  }

  async #draw() {
    const range = this.#range();
    if (!range || !this.drawn) return;
    const series = this.series;
    const by = new Map(this.suspects.map((suspect) => [suspect.sensor, suspect]));
    const lines = this.lines().flatMap((sensor) => {
      const course = series?.series[sensor];
      return course ? [{ sensor, course, title: lineTitle(by.get(sensor), sensor) }] : [];
    });
    const [from, to] = range.map(milliseconds);
    const marks = this.marks.filter((mark) => milliseconds(mark.time) >= from && milliseconds(mark.time) <= to);
    const wanted = /** @type {Range} */ (range.map(wall));
    await this.chart.draw({ evidence: this.evidence, time: series?.time ?? [], lines, range: wanted, marks });
  }

  #steps() {
    const button = (/** @type {string} */ text, /** @type {number} */ shift, /** @type {number} */ grow) =>
      h("button", { type: "button", click: () => this.#step(shift, grow) }, text);
    return h(
      "span",
      { class: "buttons", role: "group", "aria-label": "Stretch of time" },
      button("Earlier", -0.5, 1),
      button("Later", 0.5, 1),
      button("Zoom in", 0, 0.5),
      button("Zoom out", 0, 2),
    );
  }

  /**
   * @param {number} shift in lengths of what is shown
   * @param {number} grow
   */
  #step(shift, grow) {
    const range = this.#range();
    if (!range) return;
    const [from, to] = range.map(milliseconds);
    const [middle, half] = [(from + to) / 2 + shift * (to - from), ((to - from) / 2) * grow];
    this.zoom([moment(middle - half, range[0]), moment(middle + half, range[0])]);
  }

  /** @param {string} sensor */
  #choose(sensor) {
    this.add.value = "";
    if (sensor && !this.chosen.includes(sensor)) this.chosen.push(sensor);
    this.#chosenChanged();
  }

  #chosenChanged() {
    fill(
      this.chips,
      this.chosen.map((sensor) =>
        h(
          "button",
          {
            type: "button",
            "aria-label": `Do not draw ${sensor}`,
            click: () => {
              this.chosen = this.chosen.filter((name) => name !== sensor);
              this.#chosenChanged();
            },
          },
          `${sensor} ×`,
        ),
      ),
    );
    void this.#load();
  }
}

/**
 * When the last window is, in milliseconds.
 * @param {{time: string[]}} evidence
 */
function newest({ time }) {
  return time.length ? milliseconds(time[time.length - 1]) : -Infinity;
}

/**
 * Put windows behind others, but for those that are no later; returns whether there were any.
 * @param {Evidence} evidence
 * @param {Omit<Evidence, "threshold">} more
 */
function extend(evidence, more) {
  const last = newest(evidence);
  const from = more.time.findIndex((time) => milliseconds(time) > last);
  if (from < 0) return false;
  evidence.time.push(...more.time.slice(from));
  evidence.evidence.push(...more.evidence.slice(from));
  evidence.state.push(...more.state.slice(from));
  return true;
}

/**
 * What the shapes of the chart mean.
 * @param {boolean} sensors whether any is drawn
 */
function legend(sensors) {
  const item = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("span", {}, h("span", { class: `key ${name}`, "aria-hidden": "true" }), text);
  const readings = [
    item("key-read", "reading"),
    item("key-band", "predicted by the other sensors"),
    item("key-outside", "outside of it three times in a row"),
  ];
  const levels = [item("key-threshold", "alarm at 0"), item("key-suspicious", "suspicious at \u22122.3")];
  return sensors ? [...readings, ...levels] : levels;
}
