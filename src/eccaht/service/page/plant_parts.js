// @ts-check
/** The parts of a plant's page, each a function of what the service says. */

import { acknowledge, callNormal, unshelve } from "./actions.js";
import { h } from "./dom.js";
import {
  counted,
  duration,
  evidenceText,
  interval,
  listed,
  local,
  probability,
  recent,
  sized,
  time,
  word,
} from "./format.js";
import { bar, mark, plantMark } from "./marks.js";
import { link } from "./parts.js";
import { Table } from "./table.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Plant} Plant */
/** @typedef {import("./types.js").Suspect} Suspect */
/** @typedef {import("./types.js").Gap} Gap */
/** @typedef {import("./types.js").SourceState & {name: string}} Source */

/**
 * Name, state and numbers.
 * @param {Plant} plant
 */
export function plantHead(plant) {
  const left = [
    [plant.late, "late"],
    [plant.duplicate, "sent twice"],
    [plant.ahead, "from the future"],
    [plant.held, "ahead of all others, which wait"],
  ].flatMap(([count, what]) => (count ? [`${count.toLocaleString("en")} ${what}`] : []));
  const rows = plant.row_seconds === null ? null : plant.seconds / plant.row_seconds;
  const length = rows === null ? duration(plant.seconds) : counted(rows, "row");
  const facts = [
    ["Evidence", evidenceText(plant.evidence)],
    [
      "Last window",
      plant.position ? `${time(plant.position)}${plant.timezone ? ` ${plant.timezone}` : ""}` : "none yet",
    ],
    ["Windows", `${plant.windows.toLocaleString("en")} of ${length}`],
    ["Sensors", String(plant.sensors.length)],
    ["Rows left out", left.join(", ") || "none"],
    ["Model", `${plant.model} (${plant.model_digest.slice(0, 8)})`],
    ["False alarms", plant.promise],
  ];
  return [
    h("h1", {}, plant.name, " ", plantMark(plant)),
    plant.no_data && h("div", { class: "box alarm-box" }, mark("no data", "No data:"), h("p", {}, plant.no_data)),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
  ];
}

/**
 * What is wrong now and what may be done about it.
 * @param {Context} context
 * @param {Plant} plant
 * @param {number | null} open the number of the alarm that goes on
 */
export function alarmBox(context, plant, open) {
  const { fault, acknowledged, name } = plant;
  if (!fault) {
    if (plant.state !== "suspicious") return null;
    const text = "The last windows are unusual, but too little for an alarm at this false-alarm rate.";
    return h("div", { class: "box suspicious-box" }, mark("suspicious", "Suspicious"), h("p", {}, text));
  }
  const may = context.may("operate");
  const sure =
    fault.confidence === null
      ? "No confidence in the whole set was estimated."
      : `Confidence in the whole set: ${probability(fault.confidence)}.`;
  return h(
    "div",
    { class: "box alarm-box" },
    h(
      "h2",
      {},
      mark(acknowledged ? "acknowledged" : "alarm", acknowledged ? "Alarm, acknowledged:" : "Alarm:"),
      " ",
      listed(fault.named, 8),
    ),
    h(
      "p",
      {},
      `Wrong since ${time(fault.onset)}${interval(fault.onset_interval)}, raised at ${time(fault.raised)}. ${sure}`,
    ),
    h(
      "p",
      { class: "buttons" },
      may &&
        !acknowledged &&
        h("button", { type: "button", class: "primary", click: () => acknowledge(context, name) }, "Acknowledge"),
      may && h("button", { type: "button", click: () => callNormal(context, name, fault.named) }, "New normal"),
      open !== null && h("a", { class: "button", href: link(name, open) }, "Open the incident"),
      !may && h("span", { class: "faint" }, "You may look only: actions need a token with the scope operate."),
    ),
  );
}

/**
 * Sensors that bear no evidence now.
 * @param {Context} context
 * @param {Plant} plant
 */
export function outOfService(context, plant) {
  const { stuck, silent, range } = plant.still;
  const shelved = Object.entries(plant.shelved);
  if (!stuck.length && !silent.length && !range.length && !shelved.length) {
    const text = plant.no_data
      ? "Not known: the plant has no data."
      : "Every sensor delivers, moves, is in range and is watched.";
    return h("p", { class: "nothing" }, text);
  }
  const line = (/** @type {string} */ word, /** @type {string[]} */ names) =>
    names.length > 0 && h("p", {}, h("strong", {}, `${word}: `), listed(names, 12));
  const back = (/** @type {string} */ sensor) =>
    h("button", { type: "button", class: "small", click: () => unshelve(context, plant.name, sensor) }, "Take back");
  return h(
    "div",
    {},
    line("Stuck", stuck),
    line("Silent", silent),
    line("Out of range", range),
    shelved.length > 0 && h("strong", {}, `${counted(shelved.length, "sensor")} shelved:`),
    h(
      "ul",
      { class: "shelved" },
      shelved.map(([sensor, until]) =>
        h("li", {}, `${sensor} until ${time(until)} `, context.may("operate") && back(sensor)),
      ),
    ),
  );
}

/**
 * @param {boolean} may whether there is a button to shelve
 * @param {(sensor: string) => void} shelved
 * @returns {Table<Suspect>}
 */
export function suspectsTable(may, shelved) {
  const button = (/** @type {Suspect} */ { sensor }) =>
    h(
      "button",
      { type: "button", class: "small", "aria-label": `Shelve ${sensor}`, click: () => shelved(sensor) },
      "Shelve",
    );
  /** @type {import("./table.js").Column<Suspect>[]} */
  const columns = [
    { label: "Sensor", class: "rest-cell short", value: (row) => row.sensor, order: (row) => row.sensor },
    {
      label: "Belief",
      value: (row) => probability(row.belief),
      cell: (row) => bar(row.belief, probability(row.belief)),
      order: (row) => -(row.belief ?? 0),
    },
    {
      label: "Kind",
      value: (row) => (row.kind ? word(row.kind) : "–"),
      order: (row) => row.kind ?? "",
      bare: (row) => !row.kind,
    },
    {
      label: "Size",
      class: "number-cell",
      value: (row) => sized(row),
      order: (row) => -Math.abs(row.size ?? 0),
      bare: (row) => row.size === null,
    },
    { label: "Action", class: "action-cell", value: () => 0, cell: button },
  ];
  return new Table({
    caption: "Suspects",
    key: (row) => row.sensor,
    empty: h("p", {}, "No sensor is suspected."),
    columns: may ? columns : columns.slice(0, -1),
  });
}

/** @returns {Table<Source>} */
export function sourcesTable() {
  return new Table({
    caption: "Sources",
    key: (row) => row.name,
    empty: h("p", {}, "No source has reported; rows that are sent over HTTP need none."),
    columns: [
      { label: "Source", value: (row) => row.name, order: (row) => row.name },
      { label: "State", value: (row) => row.state, cell: (row) => mark(row.state), order: (row) => row.state },
      { label: "Rows", class: "number-cell", value: (row) => row.rows.toLocaleString("en"), order: (row) => row.rows },
      {
        label: "Last row",
        class: "time-cell",
        value: (row) => recent(local(row.last)),
        order: (row) => row.last ?? "",
      },
      {
        label: "Detail",
        class: "rest-cell",
        value: (row) => [row.detail || "–", gapText(row.gap)].filter(Boolean).join("; "),
        bare: (row) => !row.detail && !row.gap,
      },
    ],
  });
}

/**
 * The last stretch without rows in words: no rows for 12 min before 14:03:00.
 * @param {Gap | null} gap
 */
function gapText(gap) {
  return gap && `no rows for ${duration(gap.seconds)} before ${recent(gap.until)}`;
}
