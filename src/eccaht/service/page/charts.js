// @ts-check
/** Evidence and the courses of sensors under one time axis, drawn by the plotly that the service has in a wheel. */

import { fill, h } from "./dom.js";
import { colours, figure, summary } from "./figure.js";
import { moment, wall } from "./format.js";

/** @typedef {import("./figure.js").Picture} Picture */

const AGAIN = 30_000;

/** @type {Promise<any> | null} */
let library = null;

/** The charts library, fetched when the first chart is drawn, and after a failure once more in a while. */
function plotly() {
  library ??= fetched();
  return library;
}

/** @returns {Promise<any>} */
function fetched() {
  const found = new Promise((resolve, reject) => {
    const script = h("script", { src: new URL("./plotly.min.js", import.meta.url).href });
    script.onload = () => resolve(/** @type {any} */ (window).Plotly);
    script.onerror = () => {
      script.remove();
      window.setTimeout(() => (library = library === found ? null : library), AGAIN);
      reject(new Error("the charts library could not be loaded"));
    };
    document.head.append(script);
  });
  return found;
}

/** One figure: evidence on top, a row for each sensor, all under one axis of time. */
export class Chart {
  /** @param {(range: [string, string] | null) => void} onZoom what the user looks at; null for all of it again */
  constructor(onZoom) {
    this.plot = h("div", { class: "plot", role: "img", "aria-label": "Chart" });
    this.element = h("div", { class: "chart" }, h("div", { class: "skeleton" }, h("div", { class: "skeleton-block" })));
    this.onZoom = onZoom;
    this.ready = this.closed = false;
    /** @type {Picture | null} */
    this.picture = null;
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => void (this.picture && this.draw(this.picture));
    this.dark.addEventListener("change", this.redraw);
  }

  /**
   * Draw, or bring what is drawn up to date.
   * @param {Picture} picture
   */
  async draw(picture) {
    if (this.closed) return;
    this.picture = picture;
    let Plotly;
    try {
      Plotly = await plotly();
    } catch (error) {
      const retry = () => {
        library = null;
        this.redraw();
      };
      const again = h("button", { type: "button", click: retry }, "Try again");
      fill(this.element, h("p", { class: "nothing" }, `No chart: ${/** @type {Error} */ (error).message}. `, again));
      return;
    }
    if (this.closed || picture !== this.picture) return;
    if (!this.ready) fill(this.element, this.plot);
    const { data, layout } = figure(picture, colours(this.element), this.element.clientWidth);
    this.plot.setAttribute("aria-label", summary(picture));
    await Plotly.react(this.plot, data, layout, { displayModeBar: false, responsive: true, doubleClick: false });
    if (this.closed) return Plotly.purge(this.plot); // closed while it was drawn
    if (!this.ready) this.#listen();
    this.ready = true;
  }

  /** Free what the chart holds. */
  async close() {
    this.closed = true;
    this.dark.removeEventListener("change", this.redraw);
    if (this.ready) (await plotly()).purge(this.plot);
  }

  #listen() {
    const plot = /** @type {any} */ (this.plot);
    plot.on("plotly_relayout", (/** @type {Record<string, any>} */ change) => {
      const from = change["xaxis.range[0]"] ?? change["xaxis.range"]?.[0];
      const to = change["xaxis.range[1]"] ?? change["xaxis.range"]?.[1];
      if (from === undefined || to === undefined) return;
      const rows = typeof from === "number";
      this.onZoom(rows ? [moment(from * 1000, "row 1"), moment(to * 1000, "row 1")] : [wall(from), wall(to)]);
    });
    plot.on("plotly_doubleclick", () => this.onZoom(null));
  }
}
