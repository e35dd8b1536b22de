// @ts-check
/** Two fields for a period on the clock of a plant; rows where the plant has no times. */

import { h } from "./dom.js";
import { milliseconds, rowNumber, wall } from "./format.js";

/** @typedef {[string, string]} Range */

/** A period that the user writes; `onChange` is called with one that has both ends in order. */
export class Period {
  /**
   * @param {boolean} rows whether rows are counted
   * @param {(range: Range) => void} [onChange]
   */
  constructor(rows, onChange) {
    this.rows = rows;
    const field = (/** @type {string} */ label) =>
      h("input", {
        type: rows ? "number" : "datetime-local",
        step: 1,
        ...(rows ? { min: 1 } : {}),
        "aria-label": label,
        change: () => {
          const range = this.value;
          if (range && onChange) onChange(range);
        },
      });
    this.from = field("From");
    this.to = field("To");
    this.element = h("span", { class: "buttons" }, "From", this.from, "to", this.to);
  }

  /** @param {Range} range */
  show(range) {
    const written = (/** @type {string} */ text) => String(rowNumber(text) ?? wall(text).slice(0, 19));
    for (const [field, text] of /** @type {const} */ ([
      [this.from, range[0]],
      [this.to, range[1]],
    ])) {
      if (field !== document.activeElement) field.value = written(text);
    }
  }

  /** @returns {Range | null} what is written, null if an end is missing or they are in the wrong order */
  get value() {
    this.to.setCustomValidity("");
    if (!this.from.value || !this.to.value) return null;
    const read = (/** @type {string} */ text) => (this.rows ? `row ${text}` : text);
    const range = /** @type {Range} */ ([read(this.from.value), read(this.to.value)]);
    const good = milliseconds(range[0]) < milliseconds(range[1]);
    if (good) return range;
    this.to.setCustomValidity("The end must be after the start");
    this.to.reportValidity();
    return null;
  }

  /** What to do where there is no value. */
  get problem() {
    return `${this.to.validity.customError ? this.to.validationMessage : "Choose a period first"}.`;
  }
}
