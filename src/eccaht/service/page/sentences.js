// @ts-check
/** What is wrong, in sentences that operators read aloud. */

import { h } from "./dom.js";
import { listed, number, probability, recent } from "./format.js";
import { label, withUnit } from "./units.js";

/** @typedef {import("./types.js").Severity} Severity */
/**
 * @typedef {object} Wrong
 * @property {string} sensor
 * @property {string | null} kind
 * @property {number | null} size
 * @property {string | null} since
 * @property {string | null} [to] when it returned to normal
 * @property {string} [joined] when it joined an alarm that began without it
 */

const PREDICTED = "the other sensors predict";

/** @type {Record<string, string>} */
const WITHOUT_SIZE = {
  stuck: "is stuck at one value",
  silent: "delivers no readings",
  range: "reads beyond everything in the history",
  moved: "has moved, though it was constant in the history",
  free: "no longer follows the other sensors",
  replay: "does not follow the other sensors, as if its readings were replayed",
  noise: `scatters more than ${PREDICTED}`,
};

/**
 * What a sensor does: reads 2.6 °C lower than the other sensors predict.
 * @param {Wrong} wrong
 */
function deviation({ sensor, kind, size }) {
  if (size === null || kind === null || (kind in WITHOUT_SIZE && kind !== "noise"))
    return WITHOUT_SIZE[kind ?? ""] ?? `differs from what ${PREDICTED}`;
  const much = withUnit(number(Math.abs(size)), sensor);
  if (kind === "noise") return `scatters by ${much} around what ${PREDICTED}`;
  const way = `${much} ${size < 0 ? "lower" : "higher"} than ${PREDICTED}`;
  return kind === "drift" ? `drifts and reads on average ${way}` : `reads ${way}`;
}

/**
 * A sentence without its full stop and subject: reads 2.6 lower than the other sensors predict, since 13:15.
 * @param {Wrong} wrong
 */
export function predicate(wrong) {
  const from = wrong.joined ?? wrong.since;
  if (from === null) return deviation(wrong);
  const since = wrong.joined ? "in the alarm " : "";
  if (!wrong.to) return `${deviation(wrong)}, ${since}since ${clock(from)}`;
  const was = deviation(wrong).replaceAll(/\b[a-z]+\b/g, (verb) => PAST.get(verb) ?? verb);
  return `${was}, ${since}from ${clock(from)} to ${clock(wrong.to)}`;
}

/** The verbs of deviations in the past. */
const PAST = new Map([
  ["reads", "read"],
  ["is", "was"],
  ["has", "had"],
  ["does", "did"],
  ["delivers", "delivered"],
  ["drifts", "drifted"],
  ["differs", "differed"],
  ["scatters", "scattered"],
  ["follows", "followed"],
  ["predict", "predicted"],
]);

const MOST = 5; // sentences of one alarm

/**
 * A sentence a sensor.
 * @param {Wrong[]} wrong
 */
export function sentenceList(wrong) {
  const rest = wrong.slice(MOST).map((one) => one.sensor);
  return h(
    "ul",
    { class: "sentences" },
    wrong.slice(0, MOST).map((one) => h("li", {}, `${label(one.sensor)} ${predicate(one)}.`)),
    rest.length > 0 && h("li", {}, `Also in alarm: ${listed(rest, 12)}.`),
  );
}

/**
 * A time in a sentence: full minutes have no seconds.
 * @param {string} text
 */
function clock(text) {
  return recent(text).replace(/(\d\d:\d\d):00$/, "$1");
}

/**
 * @typedef {object} Estimate how confident a naming was
 * @property {string[]} named the set that it is about
 * @property {number | null} confidence
 * @property {string} by which windows
 */

/**
 * How confident the naming is, and why if that is not known. An estimate about another set says nothing of this one.
 * @param {string[]} named
 * @param {Estimate[]} estimates
 * @param {boolean} drilled whether the model was
 */
export function confidenceText(named, estimates, drilled) {
  const set = (/** @type {string[]} */ names) => JSON.stringify([...names].sort());
  const known = estimates.flatMap(({ named: some, confidence, by }) =>
    confidence !== null && set(some) === set(named) ? [`${probability(confidence)} ${by}`] : [],
  );
  if (known.length) {
    return `Confidence that exactly these sensors are faulty: ${known.join(", ")} (estimated in drills).`;
  }
  if (estimates.some(({ confidence }) => confidence !== null)) return "Confidence: not estimated for exactly these sensors.";
  return drilled
    ? "Confidence: not estimated, since drills had too few alarms of this kind."
    : "Confidence: not estimated, since the model was not drilled.";
}

/** By what the alarm is known that goes on: its sensors are named anew every few windows. */
export const LAST = "by the last windows";

/** By what an estimate was made that looks at the whole incident. */
export const HINDSIGHT = "by all windows of the incident";

/** The rule, which is explained once. */
export const SEVERITY_RULE =
  "Severity by sensors in alarm and by evidence: high from 3 sensors or 13.8 nats above the threshold on, " +
  "medium from 2 sensors or 4.6 nats on, else low. It says how plain the deviation is, not what it costs.";
