// @ts-check
/** States as a shape, a word and a colour, so that none of the three has to be seen alone. */

import { h, s } from "./dom.js";
import { milliseconds, time } from "./format.js";
import { SEVERITY_RULE } from "./sentences.js";
import { label } from "./units.js";

/** @typedef {import("./types.js").PlantState} PlantState */
/** @typedef {import("./types.js").Severity} Severity */

const SHAPES = /** @type {Record<string, string>} */ ({
  circle: "M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11z",
  triangle: "M8 1.5L15 14H1z",
  square: "M2 2h12v12H2z",
  diamond: "M8 1L15 8L8 15L1 8z",
  cross: "M3 3L13 13M13 3L3 13",
  bars: "M4 3h3v10H4zM9 3h3v10H9z",
});

/** @type {Record<string, {shape: string, tone: string, hollow?: boolean, word?: string}>} */
const KINDS = {
  quiet: { shape: "circle", tone: "quiet", word: "normal" },
  normal: { shape: "circle", tone: "quiet" },
  suspicious: { shape: "triangle", tone: "suspicious" },
  changed: { shape: "triangle", tone: "suspicious" },
  alarm: { shape: "square", tone: "alarm", word: "in alarm" },
  active: { shape: "square", tone: "alarm" },
  silent: { shape: "cross", tone: "alarm", hollow: true },
  stuck: { shape: "diamond", tone: "suspicious" },
  range: { shape: "diamond", tone: "alarm", word: "out of range" },
  shelved: { shape: "bars", tone: "dim" },
  "no-data": { shape: "cross", tone: "alarm", hollow: true, word: "not watched" },
  acknowledged: { shape: "square", tone: "alarm", hollow: true, word: "in alarm, acknowledged" },
  running: { shape: "circle", tone: "quiet" },
  connecting: { shape: "circle", tone: "dim", hollow: true },
  waiting: { shape: "bars", tone: "dim" },
  broken: { shape: "cross", tone: "alarm", hollow: true },
  live: { shape: "circle", tone: "quiet" },
  lost: { shape: "cross", tone: "alarm", hollow: true, word: "disconnected" },
};

/**
 * A shape with its word.
 * @param {string} kind
 * @param {string} [word] in place of the usual one
 */
export function mark(kind, word) {
  const look = KINDS[kind] ?? { shape: "diamond", tone: "dim", hollow: true };
  const picture = s(
    "svg",
    { viewBox: "0 0 16 16", "aria-hidden": "true", class: `shape ${look.tone}${look.hollow ? " hollow" : ""}` },
    s("path", { d: SHAPES[look.shape] }),
  );
  return h("span", { class: "mark", "data-kind": kind }, picture, h("span", {}, word ?? look.word ?? kind));
}

/**
 * All states under which a plant counts: one in alarm may be unwatched besides.
 * @param {{state: PlantState, no_data: string | null}} plant
 */
export function plantStates({ state, no_data }) {
  return (state === "alarm" || state === "changed") && no_data !== null ? [state, /** @type {const} */ ("no-data")] : [state];
}

/** The word of a plant or a sensor that no window says anything about yet. */
export const WAITING = "waiting for data";

/**
 * The marks of a plant, with the severity of its alarm.
 * @param {{
 *   state: PlantState, acknowledged: boolean, no_data: string | null, windows: number, severity: Severity | null
 * }} plant
 */
export function plantMark(plant) {
  const [state, ...more] = plantStates(plant);
  const kind = state === "alarm" && plant.acknowledged ? "acknowledged" : state;
  return h(
    "span",
    { class: "marks" },
    mark(kind, kind === "waiting" ? WAITING : undefined),
    plant.severity && severityBadge(plant.severity),
    more.map((other) => mark(other)),
  );
}

/** @param {Severity} severity */
export function severityBadge(severity) {
  const word = h("span", { class: "hidden-text" }, "severity ");
  return h("span", { class: `severity ${severity}`, title: SEVERITY_RULE }, word, severity);
}

/**
 * A probability as a bar with its number beside it.
 * @param {number | null} value between 0 and 1
 * @param {string} text
 */
export function bar(value, text) {
  const part = h("span", { class: "bar-part" });
  part.style.inlineSize = `${Math.max(0, Math.min(value ?? 0, 1)) * 100}%`;
  return h("span", { class: "bar" }, h("span", { class: "bar-whole", "aria-hidden": "true" }, part), text);
}

const [WIDE, HIGH, LOW, TOP] = [120, 24, -7, 2.3]; // of a sparkline; its lowest and highest evidence

/**
 * Evidence of the last windows in nats above the threshold, which is a line.
 * @param {readonly (number | null)[]} values
 */
export function sparkline(values) {
  const y = (/** @type {number} */ value) => HIGH * (1 - (value - LOW) / (TOP - LOW));
  const step = WIDE / Math.max(values.length - 1, 1);
  const places = values.map((value, k) => {
    const held = Math.min(Math.max(value ?? LOW, LOW), TOP);
    return `${(k * step).toFixed(1)},${y(held).toFixed(1)}`;
  });
  return s(
    "svg",
    { viewBox: `0 -1 ${WIDE} ${HIGH + 2}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
    s("path", { d: `M0 ${y(0)}H${WIDE}`, class: "spark-threshold" }),
    s("polyline", { points: places.join(" "), class: "spark-line" }),
  );
}

/**
 * The last readings of a sensor from their least to their largest; nothing where there is none.
 * @param {readonly (number | null)[]} values
 */
export function trend(values) {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const step = WIDE / Math.max(values.length - 1, 1);
  let path = "";
  for (const [k, value] of values.entries()) {
    if (value === null) continue;
    const y = high > low ? HIGH * (1 - (value - low) / (high - low)) : HIGH / 2;
    path += `${k > 0 && values[k - 1] !== null ? "L" : "M"}${(k * step).toFixed(1)} ${y.toFixed(1)}`;
  }
  return s(
    "svg",
    { viewBox: `0 -1 ${WIDE} ${HIGH + 2}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
    s("path", { d: path, class: "spark-line" }),
  );
}

/**
 * When each sensor belonged to an alarm: one bar a sensor, with the onset and the alarm.
 * @param {{sensor: string, from: string, to: string}[]} spans
 * @param {{onset: string | null, interval: [string, string] | null, raised: string, end: string, over: boolean}} times
 */
export function timeline(spans, { onset, interval, raised, end, over }) {
  const edges = [raised, end, onset, ...(interval ?? [])].filter((one) => one !== null);
  const first = edges.reduce((one, other) => (milliseconds(other) < milliseconds(one) ? other : one));
  const length = Math.max(milliseconds(end) - milliseconds(first), 1);
  const at = (/** @type {string} */ moment) =>
    Math.min(Math.max(((milliseconds(moment) - milliseconds(first)) / length) * 100, 0), 100);
  const wide = interval && interval[0] !== interval[1] ? interval : null;
  const rows = [...new Set(spans.map((span) => span.sensor))].map((sensor) => {
    const bars = spans.filter((span) => span.sensor === sensor);
    return [
      h("div", { class: "timeline-name" }, label(sensor)),
      h(
        "div",
        { class: "timeline-track" },
        wide && stretch("timeline-interval", at(wide[0]), at(wide[1])),
        bars.map((span) => stretch("timeline-bar", at(span.from), at(span.to))),
        onset && stretch("timeline-onset", at(onset), at(onset)),
        stretch("timeline-raised", at(raised), at(raised)),
      ),
    ];
  });
  const key = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("span", {}, h("span", { class: `key ${name}` }), text);
  return h(
    "div",
    { class: "timeline", role: "img", "aria-label": `${rows.length} sensors over time; the table below says the same` },
    rows.flat(),
    h("div", {}),
    h(
      "div",
      { class: "timeline-ends" },
      h("span", {}, time(first)),
      h("span", {}, over ? time(end) : `${time(end)}, active`),
    ),
    h(
      "div",
      { class: "legend timeline-legend" },
      key("key-set", "in alarm"),
      onset && key("key-onset", "onset"),
      wide && key("key-interval", "its interval of 95 %"),
      key("key-raised", "alarm raised"),
    ),
  );
}

/**
 * @param {string} name
 * @param {number} from
 * @param {number} to in percent
 */
function stretch(name, from, to) {
  const part = h("span", { class: name });
  part.style.insetInlineStart = `${from}%`;
  part.style.inlineSize = `${Math.max(to - from, 0)}%`;
  return part;
}
