// @ts-check
/** Buttons that show the rows of one state, each with how many there are. */

import { fill, h } from "./dom.js";
import { mark } from "./marks.js";

/**
 * Make the buttons again if what they say has changed; the one that had the focus has it afterwards.
 * @param {HTMLElement} filters
 * @param {[kind: string, count: number, word: string][]} choices
 * @param {string} chosen
 * @param {(kind: string) => void} choose
 */
export function fillFilters(filters, choices, chosen, choose) {
  const shown = JSON.stringify([choices, chosen]);
  if (filters.dataset.shown === shown) return;
  filters.dataset.shown = shown;
  const focused = [...filters.children].indexOf(/** @type {Element} */ (document.activeElement));
  fill(
    filters,
    choices.map(([kind, count, word]) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(kind === chosen), disabled: !count, click: () => choose(kind) },
        mark(kind, `${count} ${word}`),
      ),
    ),
  );
  const again = filters.children[focused];
  if (again instanceof HTMLElement) again.focus();
}
