// @ts-check
/** Raw trends of any sensors over any period. What is shown stands in the address, so that it can be sent to others. */

import { plantPath } from "./api.js";
import { Chart } from "./charts.js";
import { fill, h, throttled } from "./dom.js";
import { counted, duration, milliseconds, moment, time, wall } from "./format.js";
import { link, reason, section } from "./parts.js";
import { Period } from "./period.js";
import { keepUp } from "./view.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Plant} Plant */
/** @typedef {import("./types.js").Curve} Curve */
/** @typedef {import("./period.js").Range} Range */
/**
 * @typedef {object} Trends
 * @property {string[]} time
 * @property {Record<string, {value: Curve, low: Curve, high: Curve}>} series
 * @property {number} seconds
 * @property {number} windows
 * @property {number} one_of
 * @property {string | null} first
 * @property {string | null} last
 */

const SPANS = /** @type {[number, string][]} */ ([
  [600, "10 minutes"],
  [3600, "hour"],
  [21600, "6 hours"],
  [86400, "day"],
  [604800, "7 days"],
  [2592000, "30 days"],
]);
const [ALL, OWN] = ["all", "own"];
const MOST = 12;
const AT_FIRST = 3;
const [FEWEST_POINTS, MOST_POINTS] = [200, 1200];
const AGAIN = 10_000;
const RELOAD = 5000;
const APART = 90; // pixels between the marks of two alarms; those that are closer share one

/**
 * The links to what else there is of a plant.
 * @param {Context} context
 * @param {string} plant
 */
export function viewLinks(context, plant) {
  return h(
    "span",
    { class: "buttons" },
    h("a", { class: "button", href: exploreLink(plant) }, "Explore"),
    context.may("admin") && h("a", { class: "button", href: `${link(plant)}/retrain` }, "Retrain"),
  );
}

/**
 * The address of the trends of some sensors.
 * @param {string} plant
 * @param {string[]} [sensors]
 * @param {Range | null} [range]
 */
export function exploreLink(plant, sensors = [], range = null) {
  const query = new URLSearchParams(sensors.map((sensor) => ["sensor", sensor]));
  if (range) {
    query.set("start", wall(range[0]));
    query.set("stop", wall(range[1]));
  }
  const text = query.toString();
  return `${link(plant)}/explore${text ? `?${text}` : ""}`;
}

/**
 * @param {HTMLElement} root
 * @param {Context} context
 * @param {string} name
 * @param {string} query of the address
 * @returns {() => void}
 */
export function exploreView(root, context, name, query) {
  context.crumbs(h("a", { href: link(name) }, name), h("span", { "aria-current": "page" }, "Explore"));
  return keepUp(root, context, {
    plant: name,
    what: `The trends of ${name}`,
    pause: AGAIN,
    ask: () => context.api.get(plantPath(name)),
    make: (plant) => new Page(context, plant, new URLSearchParams(query)),
  });
}

class Page {
  /**
   * @param {Context} context
   * @param {Plant} plant
   * @param {URLSearchParams} query
   */
  constructor(context, plant, query) {
    this.context = context;
    this.plant = plant;
    const asked = query.getAll("sensor").filter((name) => plant.sensors.includes(name));
    const usual = plant.suspects.length ? plant.suspects.map((one) => one.sensor) : plant.sensors;
    this.sensors = asked.length ? asked.slice(0, MOST) : usual.slice(0, AT_FIRST);
    const [start, stop] = [query.get("start"), query.get("stop")];
    /** @type {Range | null} what the user chose; null: the last so many seconds */
    this.range = start && stop && milliseconds(start) < milliseconds(stop) ? [start, stop] : null;
    this.last = this.range ? 0 : this.#usualSpan();
    /** @type {Trends | null} */
    this.trends = null;
    /** @type {{onset: string | null, time: string}[]} */
    this.alarms = [];
    this.turn = 0;
    this.chart = new Chart((range) => this.#choose(range));
    this.period = new Period(plant.row_seconds !== null, (range) => this.#choose(range));
    this.spans = h("select", { "aria-label": "Period", change: () => this.#chooseSpan(this.spans.value) });
    this.search = h("input", {
      type: "search",
      list: "explore-sensors",
      placeholder: "Draw a sensor…",
      "aria-label": "Draw a sensor",
      autocomplete: "off",
      input: () => plant.sensors.includes(this.search.value) && this.#add(this.search.value),
      change: () => this.#add(this.search.value),
    });
    this.names = h("datalist", { id: "explore-sensors" });
    this.chips = h("span", { class: "chips" });
    this.about = h("p", { class: "faint" });
    this.problem = h("p", { class: "problem", role: "status" });
    this.element = section(
      "Trends",
      [
        h("div", { class: "tools" }, this.spans, this.period.element, this.#steps()),
        h("div", { class: "row" }, this.search, this.names, this.chips),
        this.problem,
        this.chart.element,
        this.about,
      ],
      h("a", { class: "button", href: link(plant.name) }, "Back to the plant"),
    );
    this.reload = throttled(() => this.#load(), RELOAD);
    void this.#loadAlarms();
    this.#changed();
  }

  /** @param {Plant} plant */
  update(plant) {
    this.plant = plant;
  }

  /**
   * @param {import("./stream.js").Topic} topic
   * @param {any} _
   */
  hear(topic, _) {
    if (topic === "event") void this.#loadAlarms();
    if ((topic === "window" && !this.range) || topic === "resync") this.reload();
  }

  close() {
    this.reload.stop();
    void this.chart.close();
  }

  /** The shortest of the spans that shows many windows. */
  #usualSpan() {
    const window = this.plant.seconds / (this.plant.row_seconds ?? 1);
    return (SPANS.find(([seconds]) => seconds >= 300 * window) ?? SPANS[SPANS.length - 1])[0];
  }

  /** @returns {Range | null} */
  #shown() {
    if (this.range || this.plant.position === null) return this.range;
    const stop = milliseconds(this.plant.position) + (this.plant.seconds / (this.plant.row_seconds ?? 1)) * 1000;
    const stored = this.trends?.first;
    const start = Number.isFinite(this.last) ? stop - this.last * 1000 : stored ? milliseconds(stored) : 0;
    return [moment(start, this.plant.position), moment(stop, this.plant.position)];
  }

  /** @param {Range | null} range null: back to the last so many seconds */
  #choose(range) {
    this.range = range;
    if (!range && !this.last) this.last = this.#usualSpan();
    this.#changed();
  }

  /** @param {string} value */
  #chooseSpan(value) {
    if (value === OWN) return this.period.from.focus();
    this.last = value === ALL ? Infinity : Number(value);
    this.#choose(null);
  }

  /** @param {string} sensor */
  #add(sensor) {
    if (!sensor) return;
    const known = this.plant.sensors.includes(sensor);
    const full = this.sensors.length >= MOST;
    const problem = known ? full && `At most ${MOST} are drawn: take one away.` : `The plant has no sensor ${sensor}.`;
    fill(this.problem, problem);
    if (!known) return;
    this.search.value = "";
    if (full || this.sensors.includes(sensor)) return;
    this.sensors.push(sensor);
    this.#changed();
  }

  /** Something was chosen: the controls and the address say so, and the readings are asked for. */
  #changed() {
    const options = SPANS.map(([seconds, text]) => [
      String(seconds),
      this.plant.row_seconds === null ? `Last ${text}` : `Last ${counted(seconds, "row")}`,
    ]);
    const chosen = this.range ? OWN : Number.isFinite(this.last) ? String(this.last) : ALL;
    fill(
      this.spans,
      [...options, [ALL, "Everything stored"], [OWN, "From … to …"]].map(([value, text]) =>
        h("option", { value, selected: value === chosen }, text),
      ),
    );
    fill(
      this.names,
      this.plant.sensors.filter((name) => !this.sensors.includes(name)).map((name) => h("option", { value: name })),
    );
    const chip = (/** @type {string} */ sensor) => {
      const remove = () => {
        this.sensors = this.sensors.filter((name) => name !== sensor);
        this.#changed();
      };
      return h("button", { type: "button", "aria-label": `Do not draw ${sensor}`, click: remove }, `${sensor} ×`);
    };
    fill(this.chips, this.sensors.map(chip));
    window.history.replaceState(null, "", exploreLink(this.plant.name, this.sensors, this.range));
    void this.#load();
  }

  async #load() {
    const turn = ++this.turn;
    if (!this.sensors.length) {
      this.chart.element.hidden = true;
      fill(this.about, "Choose the sensors to draw.");
      return;
    }
    const range = Number.isFinite(this.last) || this.range ? this.#shown() : null;
    const points = Math.round(Math.min(Math.max(this.element.clientWidth, FEWEST_POINTS), MOST_POINTS));
    const query = { sensor: this.sensors, points, ...(range ? { start: wall(range[0]), stop: wall(range[1]) } : {}) };
    try {
      const found = await this.context.api.get(plantPath(this.plant.name, "trends"), query);
      if (turn !== this.turn) return;
      this.trends = found;
      fill(this.problem);
    } catch (error) {
      if (turn === this.turn) fill(this.problem, `The readings could not be loaded: ${reason(error)}`);
      return;
    }
    await this.#draw();
  }

  async #draw() {
    const { trends } = this;
    const range = this.#shown();
    if (!trends || !range) return;
    this.period.show(range);
    fill(this.about, about(trends, this.plant));
    this.chart.element.hidden = trends.time.length === 0;
    if (!trends.time.length) return;
    const none = trends.time.map(() => null);
    const lines = this.sensors.flatMap((sensor) => {
      const found = trends.series[sensor];
      return found ? [{ sensor, title: sensor, course: { ...found, band_low: none, band_high: none } }] : [];
    });
    const onsets = this.alarms.map((alarm) => alarm.onset ?? alarm.time);
    const marks = alarmMarks(onsets, range, this.chart.element.clientWidth);
    const wanted = /** @type {Range} */ (range.map(wall));
    await this.chart.draw({ evidence: null, time: trends.time, lines, range: wanted, marks });
  }

  async #loadAlarms() {
    try {
      this.alarms = (await this.context.api.get(plantPath(this.plant.name, "incidents"))).incidents;
      await this.#draw();
    } catch {
      this.alarms = []; // the trends are worth as much without them
    }
  }

  #steps() {
    const step = (/** @type {number} */ shift, /** @type {number} */ grow) => () => {
      const range = this.#shown();
      if (!range) return;
      const [from, to] = range.map(milliseconds);
      const [middle, half] = [(from + to) / 2 + shift * (to - from), ((to - from) / 2) * grow];
      this.#choose([moment(middle - half, range[0]), moment(middle + half, range[0])]);
    };
    const button = (/** @type {string} */ text, /** @type {() => void} */ click) =>
      h("button", { type: "button", click }, text);
    return h(
      "span",
      { class: "buttons", role: "group", "aria-label": "Stretch of time" },
      button("Earlier", step(-0.5, 1)),
      button("Later", step(0.5, 1)),
      button("Zoom in", step(0, 0.5)),
      button("Zoom out", step(0, 2)),
    );
  }
}

/**
 * The onsets of alarms in a chart; those that have no place beside each other are one mark.
 * @param {string[]} onsets
 * @param {Range} range
 * @param {number} width of the chart
 */
function alarmMarks(onsets, range, width) {
  const [from, to] = range.map(milliseconds);
  const apart = ((to - from) * APART) / Math.max(width, APART);
  /** @type {{time: string, many: number}[]} */
  const marks = [];
  for (const onset of onsets.toSorted((one, other) => milliseconds(one) - milliseconds(other))) {
    const at = milliseconds(onset);
    if (at < from || at >= to) continue;
    const last = marks.at(-1);
    if (last && at - milliseconds(last.time) < apart) last.many += 1;
    else marks.push({ time: onset, many: 1 });
  }
  return marks.map(({ time: at, many }) => ({ time: at, text: many === 1 ? "alarm" : counted(many, "alarm") }));
}

/**
 * What the curves are made of.
 * @param {Trends} trends
 * @param {Plant} plant
 */
function about({ windows, time: times, one_of, seconds, first, last }, plant) {
  const length = plant.row_seconds === null ? duration(seconds) : counted(seconds / plant.row_seconds, "row");
  const stored = first && last ? `Stored: ${time(first)} to ${time(last)}.` : "Nothing is stored yet.";
  if (!times.length) return `No window of this period is stored. ${stored}`;
  const parts = [`The line shows means of windows of ${length}, in the unit of the sensor.`];
  if (windows > times.length)
    parts.push(
      `${counted(windows, "window")} are drawn in ${counted(times.length, "point")}: the line is their mean, ` +
        "the shade reaches from the least to the largest window.",
    );
  if (one_of > 1) parts.push(`One of ${one_of} windows was read: choose a shorter period to see them all.`);
  return [...parts, stored].join(" ");
}
