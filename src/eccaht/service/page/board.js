// @ts-check
/** What is known of all plants: loaded, kept up by the stream, loaded again after a gap. */

import { oneAtATime, throttled } from "./dom.js";
import { plantStates } from "./marks.js";

/** @typedef {import("./types.js").PlantRow} PlantRow */
/** @typedef {import("./types.js").WindowMessage} WindowMessage */

const REMEMBERED = 60; // windows of a sparkline
const ALL_AGAIN = 60_000;
const WHILE_NARROW = 15_000; // the stream brings one plant only, or nothing in a hidden tab

export class Board {
  /**
   * @param {import("./api.js").Api} api
   * @param {import("./stream.js").Stream} stream
   */
  constructor(api, stream) {
    this.api = api;
    this.stream = stream;
    /** @type {Map<string, PlantRow>} */
    this.plants = new Map();
    /** @type {Map<string, (number | null)[]>} */
    this.recent = new Map();
    /** Plants that the stream reported since they were last asked for. @type {Set<string>} */
    this.reported = new Set();
    this.loaded = false;
    this.watching = false;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** Called with the row of a plant that has begun to be in alarm. */
    this.onAlarm = (/** @type {PlantRow} */ _row) => {};
    /** Ask for all plants; never twice at the same time, so that no answer comes after a newer one. */
    this.load = oneAtATime(() => this.#load());
    this.changed = throttled(() => this.listeners.forEach((listener) => listener()), 250);
    stream.on("plants", (row) => {
      this.reported.add(row.name);
      if (row.removed) this.#drop(row.name);
      else this.#take(row);
    });
    stream.on("window", (message) => this.#remember(message));
    stream.on("resync", () => void this.load().catch(() => {}));
    this.#poll();
  }

  /**
   * Listen to changes; the answer ends it.
   * @param {() => void} listener
   */
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async #load() {
    this.reported.clear();
    const { plants } = /** @type {{plants: PlantRow[]}} */ (await this.api.get("/plants"));
    const names = new Set(plants.map((row) => row.name));
    for (const name of [...this.plants.keys()]) if (!names.has(name) && !this.reported.has(name)) this.#drop(name);
    for (const row of plants) if (!this.reported.has(row.name)) this.#take(row); // what the stream sent is newer
    this.loaded = true;
    this.watching = true;
    this.changed();
  }

  /** Forget everything, for the next who logs in. */
  clear() {
    this.plants.clear();
    this.recent.clear();
    this.loaded = this.watching = false;
    this.changed();
  }

  /** How many plants are in each state; one may be in two. */
  counts() {
    const counts = { broken: 0, alarm: 0, "no-data": 0, changed: 0, suspicious: 0, waiting: 0, quiet: 0 };
    for (const row of this.plants.values()) for (const state of plantStates(row)) counts[state] += 1;
    return counts;
  }

  /** @param {string} name */
  #drop(name) {
    this.plants.delete(name);
    this.recent.delete(name);
    this.changed();
  }

  /** @param {PlantRow} row */
  #take(row) {
    const before = this.plants.get(row.name);
    this.plants.set(row.name, row);
    if (this.loaded && row.state === "alarm" && before?.state !== "alarm") this.onAlarm(row);
    this.changed();
  }

  /** @param {WindowMessage} message */
  #remember(message) {
    const row = this.plants.get(message.plant);
    if (row) Object.assign(row, { position: message.time, evidence: message.evidence, windows: row.windows + 1 });
    const values = this.recent.get(message.plant) ?? [];
    values.push(message.evidence);
    this.recent.set(message.plant, values.slice(-REMEMBERED));
    this.changed();
  }

  #poll() {
    const narrow = this.stream.plant !== null || this.stream.state === "closed";
    window.setTimeout(
      async () => {
        if (this.watching) await this.load().catch(() => {}); // the stream reports a server that is gone
        this.#poll();
      },
      narrow ? WHILE_NARROW : ALL_AGAIN,
    );
  }
}
