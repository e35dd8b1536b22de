// @ts-check
/** What the charts library is to draw, made of the answers of the service and of nothing else. */

import { evidenceText, milliseconds, number, place, probability, rowNumber, sized, time, word } from "./format.js";

/** @typedef {import("./types.js").Evidence} Evidence */
/** @typedef {import("./types.js").Course} Course */
/** @typedef {import("./types.js").Curve} Curve */

/**
 * A curve in a chart.
 * @typedef {{sensor: string, title: string, course: Course}} Line
 *
 * @typedef {object} Picture
 * @property {Evidence | null} evidence
 * @property {string[]} time of the lines
 * @property {Line[]} lines
 * @property {[string, string]} range on the plant's clock
 * @property {{time: string, text: string}[]} marks
 */

const [EVIDENCE_HEIGHT, LINE_HEIGHT, GAP, BELOW, ABOVE] = [150, 120, 26, 34, 16];
const LETTER = 8; // pixels of a letter of a mark, at most
const RUN = 3; // by chance one reading in some is outside of its band
const SHAPES_APART = 1 / 40; // of the width, so that shapes do not hide the curve
const SUSPICIOUS = -Math.log(10); // nats
const LEAST = -9; // nats: what is below is drawn at the edge

/**
 * The colours of the page.
 * @param {Element} element
 */
export function colours(element) {
  const style = getComputedStyle(element);
  const of = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    faint: of("faint"),
    line: of("line"),
    page: of("card"),
    band: of("band"),
    range: of("range"),
    read: of("read"),
    mark: of("mark"),
    suspicious: of("suspicious"),
    alarm: of("alarm"),
  };
}

/**
 * Text that plotly shows as it is, though it knows some tags.
 * @param {string} text
 */
function plain(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * What the chart shows, for those who do not see it.
 * @param {Picture} picture
 */
export function summary({ evidence, lines, range }) {
  const values = evidence?.evidence.filter((value) => value !== null) ?? [];
  const highest = values.length
    ? `; highest evidence ${evidenceText(Math.max(...values))} nats, an alarm is raised at 0`
    : "";
  const sensors = lines.length ? `; readings of ${lines.map((line) => line.sensor).join(", ")}` : "";
  return `From ${time(range[0])} to ${time(range[1])}${highest}${sensors}`;
}

/**
 * @param {Picture} picture
 * @param {ReturnType<typeof colours>} colour
 * @param {number} width
 */
export function figure(picture, colour, width) {
  const heights = [...(picture.evidence ? [EVIDENCE_HEIGHT] : []), ...picture.lines.map(() => LINE_HEIGHT)];
  const inner = heights.reduce((sum, height) => sum + height + GAP, 0) || 1;
  /** @type {any[]} */
  const data = [];
  /** @type {any[]} */
  const annotations = [];
  /** @type {Record<string, any>} */
  const axes = {};
  let below = inner;
  const row = (/** @type {number} */ k, /** @type {string} */ title) => {
    const top = below - GAP;
    below = top - heights[k];
    const name = k ? `yaxis${k + 1}` : "yaxis";
    axes[name] = {
      domain: [below / inner, top / inner],
      fixedrange: true,
      gridcolor: colour.line,
      zeroline: false,
      automargin: false,
      nticks: 4,
      tickfont: { size: 10 },
    };
    annotations.push({
      xref: "paper",
      yref: "paper",
      x: 0,
      y: top / inner,
      xanchor: "left",
      yanchor: "bottom",
      showarrow: false,
      bgcolor: colour.page,
      text: plain(title),
      font: { size: 12, color: colour.ink },
    });
    return { axis: k ? `y${k + 1}` : "y", layout: axes[name] };
  };
  let k = 0;
  if (picture.evidence) {
    const { axis, layout } = row(k++, "Evidence in nats: an alarm is raised at 0");
    layout.range = evidenceRange(picture.evidence.evidence);
    data.push(...evidenceTraces(picture.evidence, axis, colour));
  }
  for (const line of picture.lines) {
    const { axis } = row(k++, line.title);
    data.push(...lineTraces(picture.time, line, axis, colour));
  }
  const last = k > 1 ? `y${k}` : "y";
  const upright = { type: "line", xref: "x", yref: "paper", y0: 0, y1: (inner - GAP) / inner };
  const shapes = [
    ...(picture.evidence ? threshold(colour) : []),
    ...picture.marks.map((mark) => ({
      ...upright,
      layer: "below", // a spike at the onset of an alarm is not hidden by its mark
      x0: place(mark.time),
      x1: place(mark.time),
      line: { color: colour.mark, width: 1.5, dash: "dot" },
    })),
  ];
  annotations.push(
    ...picture.marks.map((mark) => ({
      xref: "x",
      yref: "paper",
      x: place(mark.time),
      y: 1,
      xanchor: anchor(mark, picture.range, width),
      yanchor: "bottom",
      showarrow: false,
      text: plain(mark.text),
      font: { size: 11, color: colour.mark },
    })),
  );
  const layout = {
    height: inner + BELOW + ABOVE,
    margin: { l: width < 500 ? 44 : 56, r: 8, t: ABOVE, b: BELOW, pad: 0 },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { family: "system-ui, sans-serif", size: 11, color: colour.faint },
    showlegend: false,
    hovermode: "x unified",
    hoverlabel: {
      bgcolor: colour.page,
      bordercolor: colour.line,
      font: { color: colour.ink, size: 12 },
      align: "left",
    },
    dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: {
      ...(rowNumber(picture.range[0]) === null ? { type: "date" } : { type: "linear", tickprefix: "row " }),
      range: picture.range.map(place),
      anchor: last,
      gridcolor: colour.line,
      nticks: width < 500 ? 4 : 9,
      tickangle: 0,
      showline: true,
      linecolor: colour.line,
    },
    annotations,
    shapes,
    ...axes,
  };
  return { data, layout };
}

/**
 * Where the text of a mark is held, so that no part of it lies beyond the chart.
 * @param {{time: string, text: string}} mark
 * @param {[string, string]} range
 * @param {number} width
 */
function anchor(mark, range, width) {
  const [from, to, at] = [...range, mark.time].map(milliseconds);
  const inside = ((at - from) / (to - from)) * width;
  const half = (mark.text.length * LETTER) / 2;
  if (width - inside < half) return "right";
  return inside < half ? "left" : "center";
}

/** @param {Curve} values */
function evidenceRange(values) {
  const known = values.filter((value) => value !== null);
  const low = Math.min(...known.map((value) => Math.max(value, LEAST)), SUSPICIOUS - 0.7);
  const high = Math.max(...known, 1);
  return [low - 0.03 * (high - low), high + 0.05 * (high - low)];
}

/** @param {ReturnType<typeof colours>} colour */
function threshold(colour) {
  const across = { type: "line", xref: "paper", x0: 0, x1: 1, yref: "y" };
  return [
    { ...across, y0: 0, y1: 0, line: { color: colour.alarm, width: 1.5, dash: "dash" } },
    { ...across, y0: SUSPICIOUS, y1: SUSPICIOUS, line: { color: colour.suspicious, width: 1, dash: "dot" } },
  ];
}

/**
 * @param {Evidence} evidence
 * @param {string} axis
 * @param {ReturnType<typeof colours>} colour
 */
function evidenceTraces(evidence, axis, colour) {
  const x = evidence.time.map(place);
  const y = evidence.evidence.map((value) => (value === null ? null : Math.max(value, LEAST)));
  const text = evidence.evidence.map((value, k) => `${evidenceText(value)}, ${evidence.state[k] ?? "not watched"}`);
  const among = (/** @type {string} */ state) => y.map((value, k) => (evidence.state[k] === state ? value : null));
  const shared = { type: "scatter", x, yaxis: axis };
  return [
    {
      ...shared,
      y,
      text,
      mode: "lines",
      name: "evidence",
      line: { color: colour.read, width: 1.5 },
      hovertemplate: "%{text}",
    },
    ...emphasis(x, among("suspicious"), axis, { color: colour.suspicious, symbol: "triangle-up", size: 8 }),
    ...emphasis(x, among("alarm"), axis, { color: colour.alarm, symbol: "square", size: 7 }),
  ];
}

/**
 * Parts of a curve in another colour, with a shape at the start of each and now and then after it.
 * @param {(string | number)[]} x
 * @param {Curve} y null elsewhere
 * @param {string} axis
 * @param {{color: string, symbol: string, size: number}} marker
 */
function emphasis(x, y, axis, marker) {
  if (y.every((value) => value === null)) return [];
  const step = Math.max(Math.ceil(x.length * SHAPES_APART), 1);
  let since = 0;
  const shaped = y.map((value) => {
    since = value === null ? 0 : since + 1;
    return value !== null && (since - 1) % step === 0 ? value : null;
  });
  const shared = { type: "scatter", x, yaxis: axis, hoverinfo: "skip" };
  return [
    { ...shared, y, mode: "lines", line: { color: marker.color, width: 2 } },
    { ...shared, y: shaped, mode: "markers", marker },
  ];
}

/**
 * The readings of a sensor: the band that the others predict, the range within a bin, the mean, and what is outside.
 * @param {string[]} times
 * @param {Line} line
 * @param {string} axis
 * @param {ReturnType<typeof colours>} colour
 */
function lineTraces(times, { sensor, course }, axis, colour) {
  const x = times.map(place);
  const shared = { type: "scatter", yaxis: axis };
  const outside = inRuns(course.value, (value, k) => {
    const [low, high] = [course.band_low[k], course.band_high[k]];
    return low !== null && high !== null && (value < low || value > high);
  });
  const text = course.value.map((value, k) => {
    const [low, high] = [course.band_low[k], course.band_high[k]];
    return `${number(value)}${low === null || high === null ? "" : `, expected ${number(low)} to ${number(high)}`}`;
  });
  const filled = { ...shared, mode: "lines", fill: "toself", line: { width: 0 }, hoverinfo: "skip" };
  return [
    { ...filled, ...ribbon(x, course.band_low, course.band_high), fillcolor: colour.band },
    { ...filled, ...ribbon(x, course.low, course.high), fillcolor: colour.range },
    {
      ...shared,
      x,
      y: course.value,
      text,
      mode: "lines",
      name: plain(sensor),
      line: { color: colour.read, width: 1.5 },
      hovertemplate: "%{text}",
    },
    ...emphasis(x, outside, axis, { color: colour.mark, symbol: "diamond", size: 7 }),
  ];
}

/**
 * The values for which something holds several times in a row, null elsewhere.
 * @param {Curve} values
 * @param {(value: number, k: number) => boolean} holds
 */
function inRuns(values, holds) {
  /** @type {Curve} */
  const kept = values.map(() => null);
  let run = 0;
  for (const [k, value] of values.entries()) {
    run = value !== null && holds(value, k) ? run + 1 : 0;
    if (run >= RUN) for (let j = k - (run === RUN ? RUN - 1 : 0); j <= k; j += 1) kept[j] = values[j];
  }
  return kept;
}

/**
 * The outlines of what lies between two curves, one for each stretch in which both are known.
 * @param {(string | number)[]} x
 * @param {Curve} low
 * @param {Curve} high
 */
function ribbon(x, low, high) {
  /** @type {(string | number | null)[]} */
  const across = [];
  /** @type {Curve} */
  const up = [];
  let start = 0;
  for (let k = 0; k <= x.length; k += 1) {
    if (k < x.length && low[k] !== null && high[k] !== null) continue;
    if (k > start) {
      across.push(...x.slice(start, k), ...x.slice(start, k).reverse(), null);
      up.push(...low.slice(start, k), ...high.slice(start, k).reverse(), null);
    }
    start = k + 1;
  }
  return { x: across, y: up };
}

/**
 * What stands above the curve of a suspect.
 * @param {import("./types.js").Suspect | undefined} suspect
 * @param {string} sensor
 */
export function lineTitle(suspect, sensor) {
  if (!suspect) return sensor;
  const size = suspect.size === null ? "" : ` ${sized(suspect)}`;
  const belief = suspect.belief === null ? "" : ` (${probability(suspect.belief)})`;
  return `${sensor}: ${suspect.kind ? word(suspect.kind) : "suspected"}${size}${belief}`;
}
