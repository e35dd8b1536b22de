// @ts-check
/** How the suspects move together in normal operation, as a table of numbers on shades. */

import { h } from "./dom.js";

/** @typedef {import("./types.js").Correlation} Correlation */

/**
 * @param {Correlation} correlation
 * @returns {HTMLElement}
 */
export function correlationMap({ sensors, matrix }) {
  const head = h(
    "tr",
    {},
    h("td", {}),
    sensors.map((name, k) => h("th", { scope: "col", title: name }, `${k + 1}`)),
  );
  const rows = sensors.map((name, k) =>
    h("tr", {}, h("th", { scope: "row" }, h("span", { class: "faint" }, `${k + 1} `), name), matrix[k].map(cell)),
  );
  return h(
    "div",
    { class: "correlation", tabindex: "0", role: "group", "aria-label": "Correlations of the sensors" },
    h("table", {}, h("caption", {}, "Correlation in normal operation"), h("thead", {}, head), h("tbody", {}, rows)),
  );
}

/** @param {number | null} value */
function cell(value) {
  const element = h("td", { class: value === null ? null : value < 0 ? "negative" : "positive" });
  element.textContent = value === null ? "–" : value.toFixed(2).replace("-0.00", "0.00").replace("-", "−");
  element.style.setProperty("--strength", String(Math.min(Math.abs(value ?? 0), 1)));
  return element;
}
