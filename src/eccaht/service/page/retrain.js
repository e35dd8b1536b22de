// @ts-check
/** A new model of a plant from a stored period: chosen, made, compared with the present one, and switched to. */

import { plantPath } from "./api.js";
import { h } from "./dom.js";
import { exploreLink } from "./explore.js";
import { counted, local, milliseconds, moment, time } from "./format.js";
import { ask, link, once, reason, section } from "./parts.js";
import { Period } from "./period.js";
import { comparison, learned, sentence } from "./retrain_parts.js";
import { keepUp } from "./view.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Plant} Plant */
/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./retrain_parts.js").Retraining} Retraining */

const AGAIN = 10_000;
const POLL = 1000;
const AT_FIRST = 30 * 86_400_000; // milliseconds before the last window
const STAGES = /** @type {Record<string, string>} */ ({
  reading: "Reading the stored windows",
  fitting: "Fitting the new model",
  drilling: "Drilling faults in both models",
});

/**
 * @param {HTMLElement} root
 * @param {Context} context
 * @param {string} name
 * @returns {() => void}
 */
export function retrainView(root, context, name) {
  context.crumbs(h("a", { href: link(name) }, name), h("span", { "aria-current": "page" }, "Retrain"));
  return keepUp(root, context, {
    plant: name,
    what: `The retraining of ${name}`,
    pause: AGAIN,
    ask: () => Promise.all([context.api.get(plantPath(name)), context.api.get(plantPath(name, "retraining"))]),
    make: ([plant], again) => new Page(context, plant, again),
  });
}

class Page {
  /**
   * @param {Context} context
   * @param {Plant} plant
   * @param {() => void} again
   */
  constructor(context, plant, again) {
    this.context = context;
    this.plant = plant;
    this.again = again;
    this.timer = 0;
    this.period = new Period(plant.row_seconds !== null);
    this.keep = h("input", { type: "checkbox" });
    this.drills = h(
      "select",
      {},
      [100, 400, 1000].map((many) => h("option", { value: many, selected: many === 400 }, counted(many, "fault"))),
    );
    this.stored = h("p", { class: "faint" });
    this.state = h("div", {});
    this.element = h("div", {}, this.#choice(), this.state);
    void this.#limits();
  }

  /** @param {[Plant, Retraining]} answer */
  update([plant, retraining]) {
    this.plant = plant;
    window.clearTimeout(this.timer);
    if (retraining.state === "running") this.timer = window.setTimeout(this.again, POLL);
    once(this.state, retraining, () => this.#standing(retraining));
  }

  hear() {}

  close() {
    window.clearTimeout(this.timer);
  }

  /** Fill in the last stored days. */
  async #limits() {
    const query = { sensor: this.plant.sensors.slice(0, 1), points: 2 };
    try {
      const { first, last } = await this.context.api.get(plantPath(this.plant.name, "trends"), query);
      if (!first || !last) return void (this.stored.textContent = "Nothing is stored yet.");
      this.stored.textContent = `Stored: ${time(first)} to ${time(last)}.`;
      const start = Math.max(milliseconds(first), milliseconds(last) - AT_FIRST);
      if (!this.period.from.value) this.period.show([moment(start, first), last]);
    } catch (error) {
      this.stored.textContent = `What is stored is not known: ${reason(error)}`;
    }
  }

  #choice() {
    const { context } = this;
    const click = () => void this.#begin();
    const begin = h("button", { type: "button", class: "primary", click }, "Make a new model");
    return section(
      "Retrain from a period",
      [
        h(
          "p",
          {},
          "A new model is fitted to the stored windows of a period of normal operation, at least 100. Both models are ",
          "then tried on the same drilled faults. The plant is watched by its present model until you switch.",
        ),
        h("div", { class: "tools" }, this.period.element, this.#look()),
        this.stored,
        h("label", {}, this.keep, " Learn from windows of alarms too: the plant was changed on purpose"),
        h("label", {}, "Drill each model with ", this.drills),
        context.may("admin")
          ? h("p", { class: "buttons" }, begin)
          : h("p", { class: "nothing" }, "A token with the scope admin may retrain and switch."),
      ],
      h("a", { class: "button", href: link(this.plant.name) }, "Back to the plant"),
    );
  }

  #look() {
    const show = () => {
      const range = this.period.value;
      if (range) window.location.hash = exploreLink(this.plant.name, [], range);
    };
    return h("button", { type: "button", click: show }, "Look at this period");
  }

  async #begin() {
    const range = this.period.value;
    if (!range) return this.context.say(this.period.problem);
    const [start, stop] = range;
    await this.#post("", { start, stop, drills: Number(this.drills.value), keep_alarms: this.keep.checked });
  }

  /**
   * @param {"" | "cancel" | "switch"} what
   * @param {object} [body]
   */
  async #post(what, body = {}) {
    const parts = what ? ["retraining", what] : ["retraining"];
    try {
      await this.context.api.post(plantPath(this.plant.name, ...parts), body);
    } catch (error) {
      this.context.say(`Not done: ${reason(error)}`);
    }
    this.again();
  }

  /**
   * @param {Retraining} now
   * @returns {Child[]}
   */
  #standing(now) {
    const cancel = (/** @type {string} */ text) =>
      this.context.may("admin") && h("button", { type: "button", click: () => void this.#post("cancel") }, text);
    const who = `Begun by ${now.by} at ${local(now.begun)}.`;
    if (now.state === "none") return [];
    if (now.state === "running") {
      const bar = h("progress", { max: 1, value: now.share, "aria-label": "Progress" });
      return [
        section("Retraining", [
          h("p", {}, `${STAGES[now.stage] ?? now.stage}: ${(100 * now.share).toFixed(0)} % `, bar),
          h("p", { class: "faint" }, `${learned(now)} ${who} Rows are watched as usual meanwhile.`),
          h("p", { class: "buttons" }, cancel("Cancel")),
        ]),
      ];
    }
    if (now.state === "failed")
      return [
        section("Not made", [
          h("p", { class: "problem" }, sentence(now.detail)),
          h("p", { class: "faint" }, learned(now)),
        ]),
      ];
    if (now.state === "cancelled") return [section("Cancelled", [h("p", {}, "No model was made or kept.")])];
    const done = now.state === "switched";
    const file = `/api${plantPath(this.plant.name, "retraining", "model")}`;
    return [
      section(done ? "Switched" : "Comparison", [
        done && h("p", {}, `The plant is watched by the new model, ${now.name}.`),
        now.found && comparison(now, now.found),
        !done &&
          this.context.may("admin") &&
          h(
            "p",
            { class: "buttons" },
            h(
              "button",
              {
                type: "button",
                class: now.found?.better === "new" ? "primary" : null,
                click: () => this.#switch(now),
              },
              "Switch to the new model",
            ),
            h("a", { class: "button", download: true, href: file }, "Download the model"),
            cancel("Discard"),
          ),
        h("p", { class: "faint" }, who),
      ]),
    ];
  }

  /** @param {Retraining} now */
  #switch(now) {
    ask({
      title: "Switch to the new model",
      body: [
        h(
          "p",
          {},
          `${this.plant.name} is watched by the new model from the next window on. `,
          "An active alarm ends; events and windows stay.",
        ),
        now.settings &&
          h(
            "p",
            { class: "faint" },
            "The settings of the service name a model file of this plant. ",
            "The new model is used in its place until that file changes.",
          ),
      ],
      submit: "Switch",
      done: async () => {
        await this.context.api.post(plantPath(this.plant.name, "retraining", "switch"));
        this.context.say(`${this.plant.name} has a new model.`);
        this.again();
      },
    });
  }
}
