// @ts-check
/** One plant: is something wrong, since when, which sensors, and what may be done. */

import { shelve, unshelve } from "./actions.js";
import { plantPath } from "./api.js";
import { correlationMap } from "./correlation.js";
import { Courses } from "./courses.js";
import { fill, h } from "./dom.js";
import { viewLinks } from "./explore.js";
import { counted, milliseconds, moment } from "./format.js";
import { hindsight } from "./incident_parts.js";
import { once, reason, section } from "./parts.js";
import { alarmBox, noWindow, plantHead, sourcesTable, suspectsTable } from "./plant_parts.js";
import { eventsTable, incidentsTable, Pages } from "./records.js";
import { SensorList } from "./sensors.js";
import { withUnitsOf } from "./units.js";
import { keepUp } from "./view.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Plant} Plant */

const SPANS = /** @type {[number, string][]} */ ([
  [600, "10 minutes"],
  [3600, "1 hour"],
  [21600, "6 hours"],
  [86400, "1 day"],
  [604800, "7 days"],
  [2592000, "30 days"],
]);
const WINDOWS_AT_FIRST = 240;
const AGAIN = 2000;
const LISTED = 0.05; // belief of a suspect that is worth a line

/**
 * @param {HTMLElement} root
 * @param {Context} context
 * @param {string} name
 * @returns {() => void}
 */
export function plantView(root, context, name) {
  context.crumbs(h("span", { "aria-current": "page" }, name));
  return keepUp(root, context, {
    plant: name,
    what: `The plant ${name}`,
    pause: AGAIN,
    ask: () => context.api.get(plantPath(name)),
    make: (plant) => new Page(context, withUnitsOf(plant)),
  });
}

/**
 * The length of a window in seconds, or in rows where the plant has no times.
 * @param {Plant} plant
 */
function windowLength(plant) {
  return plant.seconds / (plant.row_seconds ?? 1);
}

class Page {
  /**
   * @param {Context} context
   * @param {Plant} plant
   */
  constructor(context, plant) {
    this.context = context;
    this.plant = plant;
    const enough = WINDOWS_AT_FIRST * windowLength(plant);
    this.span = (SPANS.find(([seconds]) => seconds >= enough) ?? SPANS[SPANS.length - 1])[0];
    const spans = h(
      "select",
      {
        "aria-label": "Show the last",
        change: () => {
          this.span = Number(spans.value);
          this.courses.zoom(null);
        },
      },
      SPANS.map(([seconds, text]) => {
        const length = plant.row_seconds === null ? text : counted(seconds, "row");
        return h("option", { value: seconds, selected: seconds === this.span }, `Last ${length}`);
      }),
    );
    this.courses = new Courses(context, plant.name, {
      home: () => this.#home(),
      live: () => true,
      back: "Back to now",
      tools: spans,
    });
    this.head = h("div", { class: "plant-head" });
    this.alarm = h("div", {});
    const shelveOne = (/** @type {string} */ sensor) => shelve(context, this.plant, sensor);
    this.suspects = suspectsTable(context.may("operate"), shelveOne);
    this.map = h("div", {});
    /** @type {string | null} */
    this.mapped = null;
    this.list = new SensorList(context, plant.name, {
      draw: (sensor) => this.courses.draw(sensor),
      shelve: shelveOne,
      unshelve: (sensor) => unshelve(context, plant.name, sensor),
    });
    /** Of the active alarm: its number and sensors, and what all its windows say. */
    this.hindsight = { key: "", estimates: /** @type {import("./sentences.js").Estimate[]} */ ([]) };
    this.sources = sourcesTable();
    const path = (/** @type {string} */ what) => plantPath(plant.name, what);
    this.incidents = new Pages(context, path("incidents"), "incidents", incidentsTable(plant.name));
    this.events = new Pages(context, path("events"), "events", eventsTable(plant.name));
    this.incidents.onChange = () => this.#showAlarm();
    const may = context.may("operate");
    const shelving =
      may &&
      h("button", { type: "button", click: () => shelve(context, this.plant) }, "Shelve a sensor");
    this.element = h(
      "div",
      {},
      this.head,
      this.alarm,
      h(
        "div",
        { class: "columns" },
        h("div", {}, section("Trend", [this.courses.element], viewLinks(context, plant.name))),
        h(
          "div",
          {},
          section("Suspected sensors", [this.suspects.element], shelving),
          section("Correlation", [this.map]),
          section("Sources", [this.sources.element]),
        ),
      ),
      section("Sensors", [this.list.element]),
      section("Incidents", [this.incidents.element]),
      section("Events", [this.events.element]),
    );
    this.newRecords();
  }

  /** @param {Plant} plant */
  update(plant) {
    this.plant = plant;
    fill(this.head, plantHead(this.context, plant));
    this.#showAlarm();
    const suspects = plant.suspects.filter((one) => (one.belief ?? 1) >= LISTED);
    this.suspects.update(suspects.map((one) => ({ ...one, shelved: one.sensor in plant.shelved })));
    this.sources.update(Object.entries(plant.sources).map(([name, source]) => ({ name, ...source })));
    this.list.load();
    const marks = plant.fault ? [{ time: plant.fault.onset, text: "onset" }] : [];
    this.courses.update({ sensors: plant.sensors, suspects: plant.suspects, marks });
    void this.#showMap();
  }

  #showAlarm() {
    const { plant } = this;
    const open = this.incidents.rows.find((row) => row.over === null) ?? null;
    void this.#lookBack(open?.number ?? null);
    this.list.explain({ joined: open?.joined ?? {}, waiting: plant.windows ? "" : noWindow(plant) });
    const { estimates } = this.hindsight;
    const { fault, acknowledged, state, severity, still } = plant;
    const shown = [fault, acknowledged, state, severity, still, open?.number, open?.joined, estimates];
    once(this.alarm, shown, () => alarmBox(this.context, plant, open, estimates));
  }

  /**
   * Ask for the confidence with hindsight where none was estimated at the alarm, once for each set of sensors.
   * @param {number | null} open
   */
  async #lookBack(open) {
    const { fault, drilled, name } = this.plant;
    const key = fault && drilled && fault.confidence === null && open !== null ? `${open} ${fault.named}` : "";
    if (key === this.hindsight.key) return;
    this.hindsight = { key, estimates: [] };
    if (!key) return;
    const incident = await this.context.api.get(plantPath(name, "incidents", open ?? 0)).catch(() => null);
    if (key !== this.hindsight.key || incident === null) return;
    this.hindsight.estimates = [hindsight(incident)];
    this.#showAlarm();
  }

  /**
   * @param {import("./stream.js").Topic} topic
   * @param {any} message
   */
  hear(topic, message) {
    if (topic === "window") this.courses.take(message);
    if (topic === "resync") this.courses.refresh();
    if (topic === "event" || topic === "resync") this.newRecords();
  }

  newRecords() {
    void this.incidents.load();
    void this.events.load();
  }

  close() {
    this.list.close();
    this.courses.close();
  }

  /** @returns {[string, string] | null} */
  #home() {
    const known = [this.plant.position, this.courses.evidence.time.at(-1) ?? null].filter((one) => one !== null);
    const newest = Math.max(...known.map((one) => milliseconds(one)));
    if (!Number.isFinite(newest)) return null;
    const stop = newest + windowLength(this.plant) * 1000;
    return [moment(stop - this.span * 1000, known[0]), moment(stop, known[0])];
  }

  async #showMap() {
    const sensors = this.courses.lines();
    const key = sensors.join("\n");
    if (key === this.mapped) return;
    this.mapped = key;
    if (sensors.length < 2)
      return fill(
        this.map,
        h("p", { class: "nothing" }, "Shown for two sensors and more: suspects, or those drawn in the chart."),
      );
    try {
      const found = await this.context.api.get(plantPath(this.plant.name, "correlation"), { sensor: sensors });
      if (key === this.mapped) fill(this.map, correlationMap(found));
    } catch (error) {
      this.mapped = null;
      fill(this.map, h("p", { class: "problem" }, `Not loaded: ${reason(error)}`));
    }
  }
}
