// @ts-check
/** Numbers and times as people read them. Times stay on the clock of the plant: the browser's zone plays no part but for `local`. */

import { label, withUnit } from "./units.js";

const UNITS = /** @type {[number, string][]} */ ([
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
]);

/**
 * The number of a row, which stands in place of a time where a plant has none: 5 of "row 5", else null.
 * @param {string} text
 */
export function rowNumber(text) {
  const found = /^row (-?\d+)$/.exec(text);
  return found && Number(found[1]);
}

/**
 * A time without its offset, as the plant's clock shows it: 2024-05-01T08:00:00.
 * @param {string} text
 */
export function wall(text) {
  if (rowNumber(text) !== null) return text;
  return text.replace(" ", "T").replace(/(?:Z|[+-]\d\d:?\d\d)$/, "");
}

/**
 * A time of the plant's clock as milliseconds, for differences; a row counts as a second.
 * @param {string} text
 */
export function milliseconds(text) {
  const row = rowNumber(text);
  return row === null ? Date.parse(`${wall(text)}Z`) : row * 1000;
}

/**
 * The reverse of `milliseconds`, for a plant whose times are like this one.
 * @param {number} value
 * @param {string} like
 */
export function moment(value, like) {
  if (rowNumber(like) !== null) return `row ${Math.max(Math.round(value / 1000), 1)}`;
  return new Date(value).toISOString().slice(0, -1);
}

/**
 * A time as the axis of a chart takes it.
 * @param {string} text
 */
export function place(text) {
  return rowNumber(text) ?? wall(text);
}

/**
 * A time for people: 2024-05-01 08:00:00, with fractions of a second only where there are some.
 * @param {string | null | undefined} text
 */
export function time(text) {
  return text ? wall(text).replace("T", " ").replace(/\.0+$/, "") : "–";
}

/**
 * A time for people who look now: without the date if it is today.
 * @param {string | null} text
 */
export function recent(text) {
  const [date, clock] = time(text).split(" ");
  return clock && date === local(new Date().toISOString()).slice(0, 10) ? clock : time(text);
}

/**
 * A time of the service, which is no plant's, on the clock of whoever looks.
 * @param {string | null | undefined} text
 */
export function local(text) {
  return text ? new Date(text).toLocaleString("sv-SE") : "–"; // Sweden writes 2024-05-01 08:00:00
}

/**
 * A length of time in its two largest units: 1 h 5 min.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  let rest = Math.max(Math.round(seconds), 0);
  const parts = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 || (unit === "s" && parts.length === 0)) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/**
 * The time between two moments of one clock.
 * @param {string} start
 * @param {string} stop
 */
export function between(start, stop) {
  const length = (milliseconds(stop) - milliseconds(start)) / 1000;
  return rowNumber(start) === null ? duration(length) : counted(length, "row");
}

/**
 * The interval of an onset in a sentence, nothing if it is a single window.
 * @param {[string, string] | null} ends
 */
export function interval(ends) {
  return ends === null || ends[0] === ends[1] ? "" : ` (95 %: ${time(ends[0])} to ${time(ends[1])})`;
}

/**
 * A number with three digits; large and small ones with an exponent.
 * @param {number | null | undefined} value
 */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/**
 * Evidence in nats above the threshold of an alarm.
 * @param {number | null | undefined} value
 */
export function evidenceText(value) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(1).replace("-", "−");
}

export const SPREADS = new Set(["noise", "replay"]); // kinds whose size is a spread

/**
 * The size of what is wrong with a sensor, with its sign where it has one.
 * @param {{sensor: string, size: number | null, kind: string | null}} suspect
 */
export function sized({ sensor, size, kind }) {
  if (size === null) return "–";
  const sign = size > 0 && !SPREADS.has(kind ?? "") ? "+" : "";
  return withUnit(`${sign}${number(size).replace("-", "−")}`, sensor);
}

/**
 * A probability in percent; never a round 100 or 0 for what is not certain.
 * @param {number | null | undefined} value
 */
export function probability(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 0.995) return "> 99 %";
  return value < 0.005 ? "< 1 %" : `${(value * 100).toFixed(0)} %`;
}

const WORDS = /** @type {Record<string, string>} */ ({
  range: "out of range",
  "in range": "back in range",
  back: "change undone",
  over: "returned to normal",
  moved: "constant moved",
  free: "own course",
  "new-normal": "new normal",
  "old-normal": "new normal taken back",
  calm: "calm",
  joined: "joined the alarm",
  left: "left the alarm",
  "no-data": "not watched",
  "data-back": "watched again",
});

/**
 * The kind of an event, or of what is wrong with a sensor, for people.
 * @param {string} kind
 */
export function word(kind) {
  return WORDS[kind] ?? kind;
}

/**
 * A count with its noun: 1 window, 2 windows.
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Sensors in a sentence, without their units; of many, the first few and how many more.
 * @param {readonly string[]} names
 * @param {number} [most]
 */
export function listed(names, most = 6) {
  const shown = names.slice(0, most).map(label).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}
