// @ts-check
/** Tables of what happened, newest first, loaded page by page. */

import { h, oneAtATime } from "./dom.js";
import { between, listed, probability, time, word } from "./format.js";
import { mark } from "./marks.js";
import { link, reason } from "./parts.js";
import { Table } from "./table.js";

/** @typedef {import("./types.js").IncidentRow} IncidentRow */
/** @typedef {import("./types.js").EventDocument} EventDocument */

const PAGE = 10;

/**
 * Rows with numbers, of which more can be asked for.
 * @template {{number: number | null}} R
 */
export class Pages {
  /**
   * @param {import("./parts.js").Context} context
   * @param {string} path
   * @param {string} name of the list in the answer
   * @param {Table<R>} table
   */
  constructor(context, path, name, table) {
    this.context = context;
    this.path = path;
    this.name = name;
    this.table = table;
    /** @type {R[]} */
    this.rows = [];
    /** Called when the rows have changed. */
    this.onChange = () => {};
    this.older = h("button", { type: "button", hidden: true, click: () => void this.more() }, "Older");
    this.problem = h("span", { class: "problem", role: "status" });
    /** The newest ones, before those that are there. */
    this.load = oneAtATime(() => this.#newest());
    this.element = h("div", {}, table.element, h("p", { class: "buttons" }, this.older, this.problem));
  }

  async #newest() {
    await this.#ask({}, (fresh) => {
      const oldest = fresh.at(-1)?.number ?? Infinity;
      const kept = this.rows.filter((row) => (row.number ?? 0) < oldest);
      const gap = kept.length > 0 && fresh.length === PAGE && this.rows[0] && (this.rows[0].number ?? 0) < oldest;
      this.rows = gap ? fresh : [...fresh, ...kept];
      return kept.length === 0 || gap;
    });
  }

  /** Those before the oldest. */
  async more() {
    await this.#ask({ before: this.rows.at(-1)?.number ?? null }, (older) => {
      this.rows = [...this.rows, ...older];
      return true;
    });
  }

  /**
   * @param {Record<string, number | null>} query
   * @param {(rows: R[]) => boolean} take returns whether the answer says if there are older ones
   */
  async #ask(query, take) {
    try {
      const answer = await this.context.api.get(this.path, { limit: PAGE, ...query });
      const last = take(answer[this.name]);
      this.table.update(this.rows);
      this.onChange();
      this.problem.textContent = "";
      if (last) this.older.hidden = !answer.more;
    } catch (error) {
      this.problem.textContent = `Not loaded: ${reason(error)}`;
    }
  }
}

/**
 * The alarms of a plant.
 * @param {string} plant
 * @returns {Table<IncidentRow>}
 */
export function incidentsTable(plant) {
  return new Table({
    caption: "Incidents",
    key: (/** @type {IncidentRow} */ row) => String(row.number),
    empty: h("p", {}, "No alarm so far."),
    columns: [
      {
        label: "Alarm",
        value: (row) => time(row.time),
        cell: (row) => h("a", { href: link(plant, row.number) }, time(row.time)),
        order: (row) => -row.number,
        class: "time-cell",
      },
      {
        label: "Onset",
        class: "time-cell",
        value: (row) => time(row.onset ?? row.time),
        order: (row) => row.onset ?? row.time,
      },
      {
        label: "State",
        class: "time-cell",
        value: (row) => [row.over, row.acknowledged],
        cell: (row) => {
          if (row.over) return row.acknowledged ? "returned to normal" : "returned to normal, not acknowledged";
          return row.acknowledged ? mark("acknowledged", "active, acknowledged") : mark("active");
        },
        order: (row) => row.over ?? "",
      },
      {
        label: "Lasted",
        class: "time-cell",
        value: (row) => (row.over ? between(row.onset ?? row.time, row.over) : "–"),
      },
      {
        label: "Sensors in alarm",
        class: "rest-cell",
        value: (row) => row.named,
        cell: (row) => listed(row.named),
        order: (row) => row.named.join(),
      },
      {
        label: "Confidence when named",
        class: "number-cell",
        value: (row) => probability(row.confidence),
        order: (row) => -(row.confidence ?? 0),
        bare: (row) => row.confidence === null,
      },
    ],
  });
}

/**
 * All that happened in a plant.
 * @param {string} plant
 * @returns {Table<EventDocument>}
 */
export function eventsTable(plant) {
  return new Table({
    caption: "Events",
    key: (/** @type {EventDocument} */ row) => String(row.number),
    empty: h("p", {}, "Nothing has happened so far."),
    columns: [
      { label: "Time", class: "time-cell", value: (row) => time(row.time), order: (row) => -(row.number ?? 0) },
      {
        label: "Event",
        class: "time-cell",
        value: (row) => row.event,
        cell: (row) => (row.event === "alarm" ? h("a", { href: link(plant, row.number) }, "alarm") : word(row.event)),
        order: (row) => word(row.event),
      },
      { label: "What", class: "rest-cell", value: (row) => row.text },
    ],
  });
}
