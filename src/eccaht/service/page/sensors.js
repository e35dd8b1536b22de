// @ts-check
/** All sensors of a plant: state, last windows, reading, when last heard; those that need an operator come first. */

import { plantPath } from "./api.js";
import { h, throttled } from "./dom.js";
import { fillFilters } from "./filters.js";
import { number, recent, time } from "./format.js";
import { mark, trend, WAITING } from "./marks.js";
import { reason } from "./parts.js";
import { predicate } from "./sentences.js";
import { Table } from "./table.js";
import { label, withUnit } from "./units.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Sensor} Sensor */

const STATES = /** @type {[Sensor["state"], string][]} */ ([
  ["alarm", "in alarm"],
  ["silent", "silent"],
  ["stuck", "stuck"],
  ["range", "out of range"],
  ["shelved", "shelved"],
  ["waiting", WAITING],
  ["normal", "normal"],
]);
const MANY = 60; // sensors whose list is a large answer: it is asked for less often
const AT_FIRST = 12; // rows until the user asks for all

export class SensorList {
  /**
   * @param {Context} context
   * @param {string} plant
   * @param {Record<"draw" | "shelve" | "unshelve", (sensor: string) => void>} actions
   */
  constructor(context, plant, actions) {
    this.context = context;
    this.plant = plant;
    /** @type {Sensor[]} */
    this.rows = [];
    this.state = "";
    this.text = "";
    this.about = { joined: /** @type {Record<string, string>} */ ({}), waiting: "" };
    this.table = new Table({
      caption: "Sensors",
      key: (/** @type {Sensor} */ row) => row.sensor,
      columns: columns(actions, context.may("operate"), (row) => this.#remark(row)),
      empty: h("p", {}, "No sensor matches."),
      sorted: 0,
      most: AT_FIRST,
    });
    this.filters = h("div", { class: "filters", role: "group", "aria-label": "Show sensors by state" });
    this.search = h("input", {
      type: "search",
      placeholder: "Find a sensor",
      "aria-label": "Find a sensor",
      input: () => {
        this.text = this.search.value.toLowerCase();
        this.#show();
      },
    });
    this.problem = h("p", { class: "problem", role: "status" });
    const tools = h("div", { class: "row" }, this.filters, this.search);
    this.element = h("div", {}, tools, this.problem, this.table.element);
    this.load = throttled(() => this.#load(), () => (this.rows.length > MANY ? 5000 : 1000));
  }

  close() {
    this.load.stop();
  }

  /**
   * What else the plant says of its sensors: when they joined the alarm, and why there is no window.
   * @param {{joined: Record<string, string>, waiting: string}} about
   */
  explain(about) {
    this.about = about;
    this.#show();
  }

  /**
   * What is wrong with a sensor and since when, until when it is shelved, or why nothing is known of it.
   * @param {Sensor} row
   */
  #remark(row) {
    const { joined, waiting } = this.about;
    if (row.state === "shelved") return `until ${time(row.until)}`;
    if (row.state === "waiting") return waiting && `windows: ${waiting}`;
    if (row.since === null) return "";
    return predicate(row.state === "alarm" ? { ...row, joined: joined[row.sensor] } : row);
  }

  async #load() {
    try {
      const { sensors } = await this.context.api.get(plantPath(this.plant, "sensors"));
      this.rows = sensors;
      this.problem.textContent = "";
      this.#show();
    } catch (error) {
      this.problem.textContent = `Not loaded: ${reason(error)}`;
    }
  }

  #show() {
    const counts = STATES.map(([kind]) => this.rows.filter((row) => row.state === kind).length);
    if (this.state && !this.rows.some((row) => row.state === this.state)) this.state = "";
    const choices = STATES.map(([kind, word], k) => /** @type {[string, number, string]} */ ([kind, counts[k], word]));
    fillFilters(
      this.filters,
      choices.filter(([, count]) => count > 0),
      this.state,
      (chosen) => {
        this.state = this.state === chosen ? "" : chosen;
        this.#show();
      },
    );
    const shown = (/** @type {Sensor} */ row) =>
      (this.state === "" || row.state === this.state) && row.sensor.toLowerCase().includes(this.text);
    this.table.update(this.rows.filter(shown));
  }
}

/**
 * @param {Record<"draw" | "shelve" | "unshelve", (sensor: string) => void>} actions
 * @param {boolean} may whether there are buttons to shelve
 * @param {(row: Sensor) => string} remark
 * @returns {import("./table.js").Column<Sensor>[]}
 */
function columns({ draw, shelve, unshelve }, may, remark) {
  const rank = (/** @type {Sensor} */ row) => STATES.findIndex(([kind]) => kind === row.state);
  /** @type {import("./table.js").Column<Sensor>[]} */
  const found = [
    {
      label: "State",
      value: (row) => row.state,
      cell: (row) => mark(row.state, STATES[rank(row)][1]),
      order: (row) => `${rank(row)}${row.sensor}`,
    },
    {
      label: "Sensor",
      class: "sensor-cell",
      value: (row) => row.sensor,
      cell: (row) =>
        h(
          "button",
          { type: "button", class: "link", title: "Draw it in the trend", click: () => draw(row.sensor) },
          label(row.sensor),
        ),
      order: (row) => row.sensor,
    },
    { label: "Last windows", value: (row) => row.recent, cell: (row) => trend(row.recent) },
    {
      label: "Reading",
      class: "number-cell",
      value: (row) => withUnit(number(row.value), row.sensor),
      order: (row) => row.value ?? -Infinity,
    },
    {
      label: "Last heard",
      class: "time-cell",
      value: (row) => recent(row.heard),
      order: (row) => row.heard ?? "",
    },
    {
      label: "Remark",
      class: "rest-cell",
      value: remark,
      order: (row) => row.since ?? row.until ?? "~", // those without come last
      bare: (row) => !remark(row),
    },
  ];
  const action = (/** @type {Sensor} */ { sensor, state }) =>
    state === "shelved" ? button("Unshelve", sensor, unshelve) : button("Shelve", sensor, shelve);
  return may
    ? [...found, { label: "Action", class: "action-cell", value: (row) => row.state === "shelved", cell: action }]
    : found;
}

/**
 * @param {string} word
 * @param {string} sensor
 * @param {(sensor: string) => void} act
 */
function button(word, sensor, act) {
  const name = `${word} ${label(sensor)}`;
  return h("button", { type: "button", class: "small", "aria-label": name, click: () => act(sensor) }, word);
}
