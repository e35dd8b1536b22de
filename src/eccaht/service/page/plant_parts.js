// @ts-check
/** The parts of a plant's page, each a function of what the service says. */

import { acknowledge, callNormal, restore } from "./actions.js";
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
import { bar, mark, plantMark, severityBadge } from "./marks.js";
import { link } from "./parts.js";
import { confidenceText, LAST, SEVERITY_RULE, sentenceList } from "./sentences.js";
import { Table } from "./table.js";
import { label } from "./units.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Plant} Plant */
/** @typedef {import("./types.js").Suspect} Suspect */
/** @typedef {import("./types.js").IncidentRow} IncidentRow */
/** @typedef {import("./types.js").Source & {name: string}} Source */

/**
 * What operators called normal, and the way back.
 * @param {Context} context
 * @param {Plant} plant
 */
function calledNormal(context, { name, offsets, restorable }) {
  const changed = Object.entries(offsets).map(([sensor, size]) => `${sensor} ${sized({ sensor, size, kind: null })}`);
  if (!changed.length && !restorable) return null;
  const back = h("button", { type: "button", click: () => restore(context, name) }, "Take the last one back");
  return h(
    "div",
    { class: "box" },
    h("p", {}, `Called normal by an operator: ${changed.join(", ") || "as before"}.`),
    restorable && context.may("operate") && back,
  );
}

/**
 * Name, state and numbers.
 * @param {Context} context
 * @param {Plant} plant
 */
export function plantHead(context, plant) {
  const left = [
    [plant.late, "late"],
    [plant.duplicate, "sent twice"],
    [plant.ahead, "from the future"],
    [plant.held, "ahead of all others, which wait"],
  ].flatMap(([count, what]) => (count ? [`${count.toLocaleString("en")} ${what}`] : []));
  const rows = plant.row_seconds === null ? null : plant.seconds / plant.row_seconds;
  const length = rows === null ? duration(plant.seconds) : counted(rows, "row");
  const facts = [
    ["Evidence", evidenceText(plant.windows ? plant.evidence : null)],
    [
      "Last window",
      plant.position ? `${time(plant.position)}${plant.timezone ? ` ${plant.timezone}` : ""}` : "none yet",
    ],
    ["Windows", plant.windows ? `${plant.windows.toLocaleString("en")} of ${length}` : noWindow(plant)],
    ["Sensors", String(plant.sensors.length)],
    ...(plant.asked.length ? [["Read next", plant.asked.map(({ sensor, why }) => `${sensor} (${why})`).join(", ")]] : []),
    ["Rows left out", left.join(", ") || "none"],
    ["Model", `${plant.model} (${plant.model_digest.slice(0, 8)})`],
    ["False-alarm rate", h("span", { title: plant.false_alarm_rate }, plant.false_alarm_rate.split(" (")[0])],
    ["Watched by", plant.watched_by ?? "no service"],
  ];
  return [
    h("h1", {}, plant.name, " ", plantMark({ ...plant, severity: null })),
    plant.no_data && h("div", { class: "box alarm-box" }, mark("no-data", "Not watched:"), h("p", {}, plant.no_data)),
    calledNormal(context, plant),
    plant.sources.simulation && h("p", { class: "box" }, `In truth: ${plant.sources.simulation.detail}`),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
  ];
}

/**
 * Why nothing is known of a plant without a window; the last one before may be of another model.
 * @param {Plant} plant
 */
export function noWindow(plant) {
  return plant.position === null ? "none yet" : "none by this model yet";
}

/**
 * What is wrong now and what may be done about it.
 * @param {Context} context
 * @param {Plant} plant
 * @param {IncidentRow | null} open the alarm that is active
 * @param {import("./sentences.js").Estimate[]} hindsight by all windows of it so far
 */
export function alarmBox(context, plant, open, hindsight) {
  const { fault, acknowledged, name, severity } = plant;
  const wrong = wrongSensors(plant, open?.joined ?? {});
  if (!wrong.length) {
    if (plant.state !== "suspicious") return null;
    const text = "The last windows are unusual, but too little for an alarm at this false-alarm rate.";
    return h("div", { class: "box suspicious-box" }, mark("suspicious", "Suspicious"), h("p", {}, text));
  }
  const may = context.may("operate");
  return h(
    "div",
    { class: plant.state === "changed" ? "box suspicious-box" : "box alarm-box" },
    h(
      "h2",
      {},
      plant.state === "changed"
        ? mark("changed", "Changed, no alarm any more:")
        : mark(acknowledged ? "acknowledged" : "active", acknowledged ? "Alarm, acknowledged:" : "Active alarm:"),
      ` ${listed([...new Set(wrong.map((one) => one.sensor))], 8)}`,
    ),
    sentenceList(wrong),
    fault &&
      h(
        "p",
        {},
        `Onset ${time(fault.onset)}${interval(fault.onset_interval)}, alarm raised at ${time(fault.raised)}. `,
        wrong.some((one) => one.size !== null) && `Sizes ${LAST}. `,
        confidenceText(
          fault.named,
          [{ named: fault.named, confidence: fault.confidence, by: LAST }, ...hindsight],
          plant.drilled,
        ),
      ),
    severity &&
      h(
        "details",
        {},
        h("summary", {}, "Severity: ", severityBadge(severity)),
        h("p", { class: "faint" }, SEVERITY_RULE),
      ),
    h(
      "p",
      { class: "buttons" },
      may &&
        fault &&
        !acknowledged &&
        h("button", { type: "button", class: "primary", click: () => acknowledge(context, name) }, "Acknowledge"),
      may &&
        fault &&
        h("button", { type: "button", click: () => callNormal(context, name, fault.named) }, "New normal"),
      open && h("a", { class: "button", href: link(name, open.number) }, "Open the incident"),
      !may && h("span", { class: "faint" }, "You may look only: actions need a token with the scope operate."),
    ),
  );
}

/**
 * The sensors in alarm: those that the evidence names, and those that deliver no signal of use.
 * @param {Plant} plant
 * @param {Record<string, string>} joined
 * @returns {import("./sentences.js").Wrong[]}
 */
function wrongSensors({ fault, still, still_since }, joined) {
  const kinds = /** @type {(keyof typeof still)[]} */ (["silent", "stuck", "range"]);
  const standing = new Map(kinds.flatMap((kind) => still[kind].map((sensor) => [sensor, kind])));
  const named = (fault?.named ?? []).map((sensor, k) => {
    const kind = standing.get(sensor) ?? fault?.kinds[k] ?? null;
    return { sensor, kind, size: fault?.sizes[k] ?? null, since: fault?.onset ?? null, joined: joined[sensor] };
  });
  const others = [...standing].filter(([sensor]) => !fault?.named.includes(sensor));
  return [...named, ...others.map(([sensor, kind]) => ({ sensor, kind, size: null, since: still_since[sensor] }))];
}

/** @typedef {Suspect & {shelved: boolean}} Listed */

/**
 * @param {boolean} may whether there is a button to shelve
 * @param {(sensor: string) => void} shelve
 * @returns {Table<Listed>}
 */
export function suspectsTable(may, shelve) {
  const action = (/** @type {Listed} */ { sensor, shelved }) =>
    shelved
      ? mark("shelved")
      : h(
          "button",
          { type: "button", class: "small", "aria-label": `Shelve ${label(sensor)}`, click: () => shelve(sensor) },
          "Shelve",
        );
  /** @type {import("./table.js").Column<Listed>[]} */
  const columns = [
    { label: "Sensor", class: "rest-cell short", value: (row) => label(row.sensor), order: (row) => row.sensor },
    {
      label: "Probability",
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
    { label: "Action", class: "action-cell", value: (row) => row.shelved, cell: action },
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
        value: (row) => row.detail || "–",
        bare: (row) => !row.detail,
      },
    ],
  });
}
