// @ts-check
/** All plants: which of them needs an operator. */

import { plantPath } from "./api.js";
import { fill, h, throttled } from "./dom.js";
import { fillFilters } from "./filters.js";
import { evidenceText, listed, recent } from "./format.js";
import { mark, plantMark, plantStates, sparkline, WAITING } from "./marks.js";
import { errorPage, link, section, skeleton } from "./parts.js";
import { Table } from "./table.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").PlantRow} PlantRow */

const FEW = 40; // plants whose sparklines are loaded; those of more fill as windows come
const STATES = /** @type {["broken" | "alarm" | "no-data" | "changed" | "suspicious" | "waiting" | "quiet", string][]} */ ([
  ["alarm", "in alarm"],
  ["broken", "broken"],
  ["no-data", "not watched"],
  ["changed", "changed"],
  ["suspicious", "suspicious"],
  ["waiting", WAITING],
  ["quiet", "normal"],
]);
const RANK = /** @type {Record<string, number>} */ ({
  alarm: 0, broken: 2, "no-data": 2, changed: 3, suspicious: 4, waiting: 5, quiet: 6,
});
const SEVERE = ["high", "medium", "low"];
const SEARCHED = 8; // more plants than this get a field to search for one

/**
 * @param {HTMLElement} root
 * @param {Context} context
 * @returns {() => void}
 */
export function overview(root, context) {
  const { board, stream } = context;
  let state = "";
  let text = "";
  context.crumbs();
  stream.open(null);
  const table = new Table({
    caption: "Plants",
    key: (/** @type {PlantRow} */ row) => row.name,
    columns: columns(context),
    empty: h("p", {}, "No plant matches."),
    sorted: 0,
  });
  const filters = h("div", { class: "filters", role: "group", "aria-label": "Show plants by state" });
  const search = h("input", {
    type: "search",
    placeholder: "Find a plant or sensor",
    "aria-label": "Find a plant or sensor",
    input: () => {
      text = search.value.toLowerCase();
      show();
    },
  });
  const shown = (/** @type {PlantRow} */ row) =>
    (state === "" || plantStates(row).some((one) => one === state)) &&
    [row.name, ...row.named].some((name) => name.toLowerCase().includes(text));
  let laid = false;
  let left = false;

  const show = () => {
    if (left || !board.loaded) return;
    const rows = [...board.plants.values()];
    if (rows.length === 0) {
      laid = false;
      return fill(root, noPlants());
    }
    if (!laid) {
      laid = true;
      search.hidden = rows.length <= SEARCHED;
      fill(
        root,
        h("h1", { class: "hidden-text" }, "Plants"),
        h("div", { class: "row" }, filters, search),
        section("Plants", [table.element]),
      );
      void history(context, rows);
    }
    const counts = board.counts();
    if (state && !counts[/** @type {keyof typeof counts} */ (state)]) state = "";
    const choices = STATES.map(([kind, word]) => /** @type {[string, number, string]} */ ([kind, counts[kind], word]));
    fillFilters(filters, choices, state, (chosen) => {
      state = state === chosen ? "" : chosen;
      show();
    });
    table.update(rows.filter(shown));
  };
  const load = async () => {
    fill(root, skeleton());
    laid = false;
    try {
      await board.load();
      show();
    } catch (error) {
      if (left || board.loaded) return;
      fill(
        root,
        errorPage(error, "The plants", () => void load()),
      );
    }
  };
  if (board.loaded) show();
  void (board.loaded ? board.load().catch(() => {}) : load());
  const redraw = throttled(show, 500);
  const end = board.on(redraw);
  return () => {
    left = true;
    end();
    redraw.stop();
  };
}

/**
 * The last windows of a few plants, so that their sparklines do not start empty.
 * @param {Context} context
 * @param {PlantRow[]} rows
 */
async function history({ api, board }, rows) {
  if (rows.length > FEW) return;
  for (const { name } of rows) {
    if ((board.recent.get(name)?.length ?? 0) > 10) continue;
    try {
      const { evidence } = await api.get(plantPath(name, "evidence"), { points: 60 });
      board.recent.set(name, evidence.slice(-60));
      board.changed();
    } catch {
      return; // a sparkline fills as windows come
    }
  }
}

/**
 * @param {Context} context
 * @returns {import("./table.js").Column<PlantRow>[]}
 */
function columns({ board }) {
  const rank = (/** @type {PlantRow} */ row) => {
    const state = RANK[row.state] + (row.state === "alarm" && row.acknowledged ? 1 : 0);
    return `${state}${SEVERE.indexOf(row.severity ?? "") + 1}${row.name}`;
  };
  return [
    {
      label: "State",
      value: (row) => [plantStates(row), row.acknowledged, row.severity],
      cell: plantMark,
      order: rank,
    },
    {
      label: "Plant",
      class: "name-cell",
      value: (row) => row.name,
      cell: (row) => h("a", { href: link(row.name) }, row.name),
      order: (row) => row.name,
    },
    {
      label: "Evidence",
      class: "evidence-cell",
      value: (row) => [row.evidence, board.recent.get(row.name)],
      cell: (row) => [
        h("span", { class: "figure" }, evidenceText(row.windows ? row.evidence : null)),
        sparkline(board.recent.get(row.name) ?? []),
      ],
      order: (row) => -(row.evidence ?? 0),
    },
    {
      label: "Sensors in alarm",
      class: "rest-cell",
      value: (row) => row.named,
      cell: (row) => (row.named.length ? listed(row.named, 4) : none()),
      order: (row) => -row.named.length,
      bare: (row) => row.named.length === 0,
    },
    {
      label: "Since",
      class: "time-cell",
      value: (row) => recent(row.onset),
      order: (row) => row.onset ?? "",
      bare: (row) => row.onset === null,
    },
    {
      label: "Bad signals",
      value: (row) => row.still,
      cell: stillText,
      order: (row) => -badSignals(row),
      bare: (row) => badSignals(row) === 0,
    },
    {
      label: "Sources",
      value: (row) => Object.entries(row.sources).map(([name, source]) => [name, source.state]),
      cell: sourcesMark,
      order: worst,
    },
    {
      label: "Last window",
      class: "time-cell",
      value: (row) => recent(row.position),
      order: (row) => row.position ?? "",
    },
  ];
}

const none = () => h("span", { class: "faint" }, "none");

const STILL = /** @type {[keyof import("./types.js").Still, string][]} */ ([
  ["stuck", "stuck"],
  ["silent", "silent"],
  ["range", "out of range"],
]);

/** @param {PlantRow} row */
function badSignals({ still }) {
  return STILL.reduce((sum, [kind]) => sum + still[kind].length, 0);
}

/** @param {PlantRow} row */
function stillText({ still }) {
  const parts = STILL.flatMap(([kind, word]) => (still[kind].length ? [`${still[kind].length} ${word}`] : []));
  return parts.length ? parts.join(", ") : none();
}

/** @param {PlantRow} row */
function worst(row) {
  /** @type {string[]} */
  const states = Object.values(row.sources).map((source) => source.state);
  return ["broken", "connecting", "waiting", "running"].find((state) => states.includes(state)) ?? "none";
}

/** @param {PlantRow} row */
function sourcesMark(row) {
  const all = Object.values(row.sources);
  if (all.length === 0) return none();
  const state = worst(row);
  const count = all.filter((source) => source.state === state).length;
  return mark(state, all.length === 1 ? state : `${count} of ${all.length} ${state}`);
}

/** What to do where there is no plant. */
function noPlants() {
  const settings = '[plants.boiler]\nmodel = "boiler.model"\nfalse_alarms = "1/30d"';
  const send = `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: text/csv' \\\n     --data-binary @readings.csv ${window.location.origin}/api/plants/boiler/rows`;
  const step = (/** @type {string} */ what, /** @type {string} */ code) =>
    h("li", {}, what, h("pre", { tabindex: "0" }, h("code", {}, code)));
  return h(
    "div",
    { class: "state-page" },
    h("h1", {}, "No plants yet"),
    h("p", {}, "A plant is a model of normal operation and a source of readings. To add one:"),
    h(
      "ol",
      {},
      step("Make a model of a quiet stretch of history:", "eccaht calibrate history.csv --out boiler.model"),
      step("Name it in a file of settings, eccaht.toml:", settings),
      step("Start the service with it:", "eccaht serve --config eccaht.toml"),
      step("Send readings (the token has the scope ingest), or name a source in the settings:", send),
    ),
    h(
      "p",
      { class: "faint" },
      "To see a simulated plant first: ",
      h("code", {}, "eccaht serve --demo"),
      ". This page shows a plant as soon as it is there.",
    ),
  );
}
