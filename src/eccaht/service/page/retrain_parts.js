// @ts-check
/** How a retraining stands in words, and two models side by side. */

import { h } from "./dom.js";
import { counted, listed, number, probability, time } from "./format.js";

/**
 * @typedef {object} Side a model: what it was learned from, and what it made of the drills
 * @property {number} sensors
 * @property {number} history
 * @property {string} first
 * @property {string} last
 * @property {number} drills
 * @property {number} found
 * @property {number} right
 * @property {number} confident
 * @property {number} confident_wrong
 * @property {number} windows
 * @property {number} false_alarms
 * @property {number} expected
 * @property {number} in_alarm
 * @property {string | null} default_rate of false alarms, where the plant has none of its own
 *
 * @typedef {{better: "new" | "old" | "neither", old: Side, new: Side, seen: boolean}} Models
 * @typedef {Models & {left_out: {sensor: string, reason: string}[]}} Found
 *
 * @typedef {object} Retraining
 * @property {"none" | "running" | "done" | "failed" | "cancelled" | "switched"} state
 * @property {string} stage
 * @property {number} share
 * @property {string} detail
 * @property {string | null} start
 * @property {string | null} stop
 * @property {string} by
 * @property {string | null} begun
 * @property {number} windows
 * @property {Record<string, number>} left_out
 * @property {string} name
 * @property {Found | null} found
 * @property {boolean} settings
 */

const LEFT_OUT = /** @type {Record<string, string>} */ ({
  alarm: "in alarms",
  "few rows": "with too few rows",
  "other length": "of another length, of an earlier model",
});
const VERDICTS = {
  new: "The new model is better",
  old: "The present model is better",
  neither: "There is no significant difference between the models",
};

/**
 * Both models side by side.
 * @param {Retraining} now
 * @param {Found} found
 */
export function comparison(now, found) {
  const share = (/** @type {number} */ part, /** @type {number} */ whole) =>
    whole ? `${part.toLocaleString("en")} (${probability(part / whole)})` : "–";
  const drills = Math.max(found.old.drills, found.new.drills);
  const rows = /** @type {[string, (side: Side) => string][]} */ ([
    ["Windows of its history", (side) => side.history.toLocaleString("en")],
    ["Its history", (side) => `${time(side.first)} to ${time(side.last)}`],
    ["Sensors", (side) => String(side.sensors)],
    [`Faults found, of ${drills}`, (side) => share(side.found, drills)],
    ["Exactly the faulty sensors named", (side) => share(side.right, drills)],
    ["Confident answers that were wrong", (side) => `${side.confident_wrong} of ${side.confident}`],
    [
      `False alarms in ${counted(found.new.windows, "window")} of the period`,
      (side) => `${side.false_alarms} (${number(side.expected)} expected)`,
    ],
    ["Time in alarm without a fault", (side) => probability(side.in_alarm)],
    ["Default false-alarm rate", (side) => side.default_rate ?? "–"],
  ]);
  const head = ["", "Present model", "New model"].map((text) => h("th", { scope: "col" }, text));
  return h(
    "div",
    {},
    h("p", {}, h("strong", {}, `${VERDICTS[found.better]}.`), ` ${learned(now)}`),
    h(
      "div",
      { class: "table" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, head)),
        h(
          "tbody",
          {},
          rows.map(([title, of]) =>
            h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, of(found.old)), h("td", {}, of(found.new))),
          ),
        ),
      ),
    ),
    h("p", { class: "faint" }, [...cautions(found)].join(" ")),
  );
}

/**
 * What to know of the comparison.
 * @param {Found} found
 */
function* cautions(found) {
  const [all, missed] = [found.left_out, found.new.drills - found.old.drills];
  for (const why of new Set(all.map((one) => one.reason))) {
    const names = all.filter((one) => one.reason === why).map((one) => one.sensor);
    yield `Not in the new model, because ${why} in the period: ${listed(names)}.`;
  }
  if (missed > 0)
    yield `${counted(missed, "fault")} could not be tried with the present model: an alarm was on already.`;
  if (found.seen) yield "The present model was learned from windows of this period too, which favours it.";
  yield "Each half of the period was judged by the new model as fitted to the other half.";
  yield "Units and what is known of single rows are those of the present model.";
}

/**
 * From how many windows a model is learned, and of which period.
 * @param {Retraining} now
 */
export function learned({ windows, left_out, start, stop }) {
  if (!windows && !Object.values(left_out).some(Boolean)) return "";
  const parts = Object.entries(left_out).filter(([, many]) => many > 0);
  const without = parts.map(([why, many]) => `${many.toLocaleString("en")} ${LEFT_OUT[why] ?? why}`).join(", ");
  const period = start && stop ? ` from ${time(start)} to ${time(stop)}` : "";
  return `Learned from ${counted(windows, "window")}${period}${without ? `; left out: ${without}` : ""}.`;
}

/**
 * A message of the service as a sentence.
 * @param {string} text
 */
export function sentence(text) {
  return `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}.`;
}
