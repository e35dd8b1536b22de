// @ts-check
/** Tables that are sorted by their heads and updated in place, so that focus and selection survive what comes live. */

import { fill, h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * @template R
 * @typedef {object} Column
 * @property {string} label
 * @property {(row: R) => unknown} value what the cell shows; the cell is made again when it changes
 * @property {(row: R) => Child | Child[]} [cell] how it is shown, as text without this
 * @property {(row: R) => string | number} [order] what it is sorted by; without it the column is not sorted
 * @property {(row: R) => boolean} [bare] whether the cell says so little that a phone leaves it out
 * @property {string} [class]
 */

/** @template R */
export class Table {
  /**
   * @param {object} options
   * @param {string} options.caption
   * @param {Column<R>[]} options.columns
   * @param {(row: R) => string} options.key
   * @param {Child} options.empty shown where there is no row
   * @param {number} [options.sorted] the column that sorts at first; without it the order is that of the rows
   * @param {number} [options.most] rows that are shown until the user asks for all
   */
  constructor({ caption, columns, key, empty, sorted, most }) {
    this.columns = columns;
    this.key = key;
    this.sorted = sorted ?? null;
    this.falling = false;
    this.most = most ?? Infinity;
    /** @type {R[]} */
    this.rows = [];
    /** @type {Map<string, {element: HTMLTableRowElement, cells: HTMLTableCellElement[], shown: string[]}>} */
    this.made = new Map();
    this.heads = columns.map((column, k) => this.#head(column, k));
    this.menu = this.#menu(caption);
    this.body = h("tbody", { role: "rowgroup" });
    this.table = h(
      "table",
      { role: "table" },
      h("caption", { class: "hidden-text" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, this.heads)),
      this.body,
    );
    this.nothing = h("div", { class: "nothing", hidden: true }, empty);
    this.all = h("button", { type: "button", hidden: true, click: () => this.#showAll() });
    this.element = h("div", { class: "table" }, this.menu, this.table, this.nothing, h("p", { class: "all" }, this.all));
    this.#say();
    new ResizeObserver(() => this.#fit(true)).observe(this.element);
  }

  /**
   * Show these rows.
   * @param {R[]} rows
   */
  update(rows) {
    this.rows = rows;
    const seen = new Set();
    for (const row of rows) {
      const key = this.key(row);
      seen.add(key);
      this.#refresh(key, row);
    }
    for (const [key, made] of this.made) {
      if (seen.has(key)) continue;
      made.element.remove();
      this.made.delete(key);
    }
    this.#arrange();
    this.table.hidden = rows.length === 0;
    this.nothing.hidden = rows.length > 0;
    this.menu.hidden = rows.length < 2;
    this.#fit(false);
  }

  /**
   * @param {string} key
   * @param {R} row
   */
  #refresh(key, row) {
    let made = this.made.get(key);
    if (!made) {
      const cells = this.columns.map((column) =>
        h("td", { role: "cell", "data-label": column.label, class: column.class ?? null }),
      );
      made = { element: h("tr", { role: "row", "data-key": key }, cells), cells, shown: [] };
      this.made.set(key, made);
    }
    for (const [k, column] of this.columns.entries()) {
      const value = column.value(row);
      const text = JSON.stringify(value) ?? "";
      if (made.shown[k] === text) continue;
      made.shown[k] = text;
      made.cells[k].classList.toggle("bare", column.bare?.(row) ?? false);
      fill(made.cells[k], column.cell ? column.cell(row) : String(value));
    }
  }

  /**
   * Make cards of rows that are wider than the place they have; they become rows again when that changes only.
   * @param {boolean} anew
   */
  #fit(anew) {
    const { classList } = this.element;
    if (anew) classList.remove("cards");
    if (!classList.contains("cards")) classList.toggle("cards", this.table.offsetWidth > this.element.clientWidth);
  }

  #arrange() {
    const order = this.sorted === null ? undefined : this.columns[this.sorted].order;
    const rows = [...this.rows];
    if (order) {
      const way = this.falling ? -1 : 1;
      rows.sort((one, other) => way * compare(order(one), order(other)));
    }
    const wanted = rows.map((row) => this.made.get(this.key(row))?.element).filter((element) => element !== undefined);
    for (const [k, element] of wanted.entries()) element.hidden = k >= this.most;
    this.all.hidden = wanted.length <= this.most;
    this.all.textContent = `Show all ${wanted.length}`;
    if (wanted.every((element, k) => this.body.children[k] === element)) return;
    const focus = document.activeElement;
    this.body.append(...wanted);
    if (focus instanceof HTMLElement && focus !== document.activeElement && this.body.contains(focus)) {
      focus.focus({ preventScroll: true });
    }
  }

  /**
   * @param {Column<R>} column
   * @param {number} k
   */
  #head(column, k) {
    const label = column.order
      ? h("button", { type: "button", class: "sort", click: () => this.#sort(k) }, column.label)
      : column.label;
    return h("th", { role: "columnheader", scope: "col", class: column.class ?? null }, label);
  }

  /**
   * What the heads do, where rows are cards.
   * @param {string} caption
   */
  #menu(caption) {
    const choices = this.columns.flatMap((column, k) =>
      column.order ? [false, true].map((falling) => ({ k, falling, text: column.label + (falling ? " ↓" : " ↑") })) : [],
    );
    const menu = h(
      "select",
      {
        class: "sort-menu",
        "aria-label": `Sort ${caption}`,
        change: () => {
          const choice = choices[Number(menu.value)];
          if (menu.value) [this.sorted, this.falling] = [choice.k, choice.falling];
          this.#say();
          this.#arrange();
        },
      },
      h("option", { value: "" }, "Sort by…"),
      choices.map(({ text }, place) => h("option", { value: place }, text)),
    );
    return menu;
  }

  #showAll() {
    this.most = Infinity;
    this.#arrange();
    this.#fit(false);
  }

  /** @param {number} k */
  #sort(k) {
    this.falling = this.sorted === k && !this.falling;
    this.sorted = k;
    this.#say();
    this.#arrange();
  }

  #say() {
    for (const [k, head] of this.heads.entries()) {
      if (k === this.sorted) head.setAttribute("aria-sort", this.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }
}

/**
 * @param {string | number} one
 * @param {string | number} other
 */
function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
