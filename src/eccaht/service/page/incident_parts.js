// @ts-check
/** The parts of an incident's page, each a function of what the service says. */

import { acknowledge, callNormal } from "./actions.js";
import { plantPath } from "./api.js";
import { h } from "./dom.js";
import { between, interval, listed, local, milliseconds, SPREADS, time, word } from "./format.js";
import { mark, severityBadge } from "./marks.js";
import { link } from "./parts.js";
import { confidenceText, HINDSIGHT, sentenceList } from "./sentences.js";
import { Table } from "./table.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Incident} Incident */
/** @typedef {import("./types.js").EventDocument} EventDocument */
/** @typedef {import("./types.js").Similar} Similar */

/**
 * When an alarm ended, null while it goes on.
 * @param {Incident} incident
 */
export function overAt(incident) {
  return incident.course.find((one) => one.event === "over")?.time ?? null;
}

/**
 * What happened, and what may be done about it.
 * @param {Context} context
 * @param {string} plant
 * @param {Incident} incident
 * @param {{acknowledged: boolean, named: string[], ever: import("./types.js").Suspect[], drilled: boolean}} now
 */
export function incidentHead(context, plant, incident, { acknowledged, named, ever, drilled }) {
  const { alarm } = incident;
  const over = overAt(incident);
  const onset = alarm.onset ?? alarm.time;
  const may = context.may("operate") && over === null;
  const ended = over ? `returned to normal at ${time(over)} after ${between(onset, over)}. ` : "active. ";
  const joins = incident.course.filter((one) => one.event === "joined");
  const joined = new Map(joins.flatMap((one) => one.sensors.map((sensor) => [sensor, one.time])));
  const wrong = named.map((sensor) => {
    const { kind = null, size = null } = ever.find((one) => one.sensor === sensor) ?? {};
    return { sensor, kind, size, since: onset, to: over, joined: joined.get(sensor) };
  });
  const word = over
    ? h("span", { class: "mark" }, acknowledged ? "Returned to normal:" : "Returned to normal, not acknowledged:")
    : mark(acknowledged ? "acknowledged" : "active", acknowledged ? "Alarm, acknowledged:" : "Active alarm:");
  const href = `/api${plantPath(plant, "incidents", alarm.number ?? 0, "report")}`;
  return h(
    "div",
    { class: over ? "box over-box" : "box alarm-box" },
    h("h1", {}, word, ` ${listed(named, 8)}`),
    sentenceList(wrong),
    h(
      "p",
      {},
      `Onset ${time(onset)}${interval(alarm.onset_interval)}, alarm raised at ${time(alarm.time)}, ${ended}`,
      wrong.some((one) => one.size !== null) && `Sizes ${HINDSIGHT}. `,
      confidenceText(
        named,
        [
          { named: alarm.named, confidence: alarm.confidence, by: "at the alarm" },
          hindsight(incident),
        ],
        drilled,
      ),
    ),
    h("p", {}, "Severity: ", severityBadge(incident.severity)),
    h(
      "p",
      { class: "buttons" },
      may &&
        !acknowledged &&
        h("button", { type: "button", class: "primary", click: () => acknowledge(context, plant) }, "Acknowledge"),
      may && h("button", { type: "button", click: () => callNormal(context, plant, named) }, "New normal"),
      h("a", { class: "button", download: true, href }, "Download the report"),
    ),
  );
}

/**
 * The set that all windows of an incident name, and how confident that is.
 * @param {Incident} incident
 * @returns {import("./sentences.js").Estimate}
 */
export function hindsight({ answer }) {
  return {
    named: answer?.named.map((one) => one.sensor) ?? [],
    confidence: answer?.confidence ?? null,
    by: HINDSIGHT,
  };
}

/**
 * From when to when each sensor belonged to the alarm.
 * @param {Incident} incident
 * @param {string} end
 */
export function spans({ alarm, course }, end) {
  /** @type {{sensor: string, from: string, to: string}[]} */
  const done = [];
  const open = new Map(alarm.named.map((sensor) => [sensor, alarm.onset ?? alarm.time]));
  const close = (/** @type {string} */ sensor, /** @type {string} */ to) => {
    done.push({ sensor, from: open.get(sensor) ?? to, to });
    open.delete(sensor);
  };
  for (const event of course) {
    if (event.event === "joined") for (const sensor of event.sensors) open.set(sensor, event.time);
    if (event.event === "left") event.sensors.forEach((sensor) => close(sensor, event.time));
  }
  [...open.keys()].forEach((sensor) => close(sensor, end));
  const order = [...new Set([...alarm.named, ...done.map((span) => span.sensor)])];
  return done.sort((one, other) => order.indexOf(one.sensor) - order.indexOf(other.sensor));
}

/**
 * All sensors that ever belonged to the alarm, with what all its windows say of each, or else what was last reported.
 * @param {Incident} incident
 * @param {import("./types.js").Fault | null} fault the alarm as it is now, null if it is over
 * @returns {import("./types.js").Suspect[]}
 */
export function everNamed({ alarm, course, answer }, fault) {
  /** @type {Map<string, import("./types.js").Suspect>} */
  const found = new Map();
  for (const { named, beliefs, kinds, sizes } of [alarm, ...course, ...(fault ? [fault] : [])]) {
    for (const [k, sensor] of named.entries()) {
      const known = found.get(sensor);
      if (known && kinds[k] === undefined) continue;
      found.set(sensor, { sensor, belief: beliefs[k] ?? null, kind: kinds[k] ?? null, size: sizes[k] ?? null });
    }
  }
  for (const { sensor, belief, kind, size_raw, read, expected } of answer?.named ?? []) {
    const away = read === null || expected === null ? null : read - expected;
    const size = SPREADS.has(kind ?? "") ? size_raw : away;
    if (found.has(sensor)) found.set(sensor, { sensor, belief: belief ?? 1, kind, size });
  }
  return [...found.values()];
}

/**
 * The comments and actions of people, in the order of time.
 * @param {Incident} incident
 */
export function peopleList({ comments, actions }) {
  const all = [
    ...comments.map(({ at, who, text }) => ({ at, who, what: h("p", {}, text) })),
    ...actions.flatMap(({ at, who, action, document }) =>
      action === "comment" ? [] : [{ at, who, what: `: ${document?.order ?? action}` }],
    ),
  ].sort((one, other) => milliseconds(one.at) - milliseconds(other.at));
  if (!all.length) return h("p", { class: "nothing" }, "No comment and no action yet.");
  return h(
    "ul",
    { class: "people" },
    all.map(({ at, who, what }) =>
      h("li", {}, h("span", { class: "faint" }, `${local(at)} `), h("strong", {}, who), what),
    ),
  );
}

/**
 * @param {string} plant
 * @returns {Table<Similar>}
 */
export function similarTable(plant) {
  return new Table({
    caption: "Similar incidents",
    key: (row) => String(row.number),
    empty: h("p", {}, "No earlier alarm is like this one."),
    columns: [
      {
        label: "Alarm",
        class: "time-cell",
        value: (row) => time(row.time),
        cell: (row) => h("a", { href: link(plant, row.number) }, time(row.time)),
        order: (row) => -row.number,
      },
      {
        label: "Likeness",
        class: "number-cell",
        value: (row) => `${(100 * row.likeness).toFixed(0)} %`,
        order: (row) => -row.likeness,
      },
      { label: "Sensors in alarm", class: "rest-cell", value: (row) => listed(row.named) },
    ],
  });
}

/** @returns {Table<EventDocument>} */
export function courseTable() {
  return new Table({
    caption: "Events of this alarm",
    key: (row) => String(row.number),
    empty: "",
    columns: [
      { label: "Time", class: "time-cell", value: (row) => time(row.time) },
      { label: "Event", class: "time-cell", value: (row) => word(row.event) },
      { label: "What", class: "rest-cell", value: (row) => row.text },
    ],
  });
}
