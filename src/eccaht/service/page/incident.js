// @ts-check
/** One alarm: since when, which sensors and when, why, what was like it before, what people did. */

import { enterCheck } from "./actions.js";
import { plantPath } from "./api.js";
import { Courses } from "./courses.js";
import { h } from "./dom.js";
import { milliseconds, moment } from "./format.js";
import { courseTable, everNamed, incidentHead, overAt, peopleList, similarTable, spans } from "./incident_parts.js";
import { timeline } from "./marks.js";
import { commentForm, link, once, section } from "./parts.js";
import { withUnitsOf } from "./units.js";
import { keepUp } from "./view.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Incident} Incident */
/** @typedef {import("./types.js").Plant} Plant */

const AGAIN = 3000;
const BEFORE = 60; // windows that are drawn before the onset

/**
 * @param {HTMLElement} root
 * @param {Context} context
 * @param {string} plant
 * @param {number} number
 * @returns {() => void}
 */
export function incidentView(root, context, plant, number) {
  context.crumbs(h("a", { href: link(plant) }, plant), h("span", { "aria-current": "page" }, `Alarm ${number}`));
  return keepUp(root, context, {
    plant,
    what: `Alarm ${number} of ${plant}`,
    pause: AGAIN,
    ask: () => Promise.all([context.api.get(plantPath(plant, "incidents", number)), context.api.get(plantPath(plant))]),
    make: ([, now], again) => {
      withUnitsOf(now);
      return new Page(context, plant, number, again);
    },
  });
}

class Page {
  /**
   * @param {Context} context
   * @param {string} plant
   * @param {number} number
   * @param {() => void} changed
   */
  constructor(context, plant, number, changed) {
    this.context = context;
    this.plant = plant;
    /** @type {Incident | null} */
    this.incident = null;
    /** @type {Plant | null} */
    this.now = null;
    this.head = h("div", {});
    this.sets = h("div", {});
    this.why = h("div", {});
    this.people = h("div", {});
    this.similar = similarTable(plant);
    this.course = courseTable();
    this.courses = new Courses(context, plant, {
      home: () => this.#home(),
      live: () => this.incident !== null && overAt(this.incident) === null,
      back: "Whole incident",
    });
    const comment = async (/** @type {string} */ text) => {
      await context.api.post(plantPath(plant, "incidents", number, "comments"), { text });
      context.say("The comment is kept.");
      changed();
    };
    const enter = () => this.incident && enterCheck(context, plant, this.incident, changed);
    const check = h("p", { class: "buttons" }, h("button", { type: "button", click: enter }, "Enter a reading by hand"));
    this.element = h(
      "div",
      {},
      this.head,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          {},
          section("Sensors in alarm over time", [this.sets, this.course.element]),
          section("Trend", [this.courses.element]),
        ),
        h(
          "div",
          {},
          section("Why", [this.why, context.may("operate") && check]),
          section("Similar incidents", [this.similar.element]),
          section("Comments and actions", [this.people, context.may("operate") && commentForm(comment)]),
        ),
      ),
    );
  }

  /** @param {[Incident, Plant]} answer */
  update([incident, now]) {
    [this.incident, this.now] = [incident, now];
    const { alarm, course, why, comments, actions, similar } = incident;
    const over = overAt(incident);
    const acknowledged = course.some((one) => one.event === "acknowledged") || (over === null && now.acknowledged);
    const named = course.findLast((one) => one.named.length > 0)?.named ?? alarm.named;
    const ever = everNamed(incident, over === null ? now.fault : null);
    const shown = [alarm, over, acknowledged, named, ever, incident.severity, incident.answer?.confidence];
    once(this.head, shown, () =>
      incidentHead(this.context, this.plant, incident, { acknowledged, named, ever, drilled: now.drilled }),
    );
    const end = over ?? now.position ?? alarm.time;
    once(this.sets, [course, end], () =>
      timeline(spans(incident, end), {
        onset: alarm.onset,
        interval: alarm.onset_interval,
        raised: alarm.time,
        end,
        over: over !== null,
      }),
    );
    this.course.update([alarm, ...course]);
    once(this.why, why, () => whyList(why));
    this.similar.update(similar);
    once(this.people, [comments, actions], () => peopleList(incident));
    const marks = [{ time: alarm.onset ?? alarm.time, text: "onset" }];
    if (over) marks.push({ time: over, text: "returned to normal" });
    this.courses.update({ sensors: now.sensors, suspects: ever, marks });
  }

  /**
   * @param {import("./stream.js").Topic} topic
   * @param {any} message
   */
  hear(topic, message) {
    if (topic === "window") this.courses.take(message);
    if (topic === "resync") this.courses.refresh();
  }

  close() {
    this.courses.close();
  }

  /** @returns {[string, string] | null} */
  #home() {
    if (!this.incident || !this.now) return null;
    const { alarm } = this.incident;
    const over = overAt(this.incident);
    const window = (this.now.seconds / (this.now.row_seconds ?? 1)) * 1000;
    const from = milliseconds(alarm.onset_interval?.[0] ?? alarm.onset ?? alarm.time);
    const to = milliseconds(over ?? this.now.position ?? alarm.time);
    const margin = Math.max(BEFORE * window, (to - from) * 0.15);
    return [moment(from - margin, alarm.time), moment(to + (over ? margin : window), alarm.time)];
  }
}

/** @param {string[]} lines */
function whyList(lines) {
  if (!lines.length) return h("p", { class: "nothing" }, "No reasons were kept for this alarm.");
  return h(
    "ol",
    { class: "why" },
    lines.map((line) => h("li", {}, line)),
  );
}
