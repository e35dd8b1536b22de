// @ts-check
/** The page: who is logged in, which view the address asks for, whether the server is there. */

import { Api, ApiError } from "./api.js";
import { Board } from "./board.js";
import { byId, fill, h } from "./dom.js";
import { exploreView } from "./explore.js";
import { duration, listed } from "./format.js";
import { incidentView } from "./incident.js";
import { loginView } from "./login.js";
import { mark } from "./marks.js";
import { overview } from "./overview.js";
import { errorPage, link, skeleton } from "./parts.js";
import { plantView } from "./plant.js";
import { retrainView } from "./retrain.js";
import { Stream } from "./stream.js";
import { withUnitsOf } from "./units.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./types.js").Me} Me */

const NOTICE = 8000;
const LOST_AFTER = 1500; // a connection that is back sooner was hardly lost

const [main, banner, status, crumbs, notices] = ["main", "banner", "status", "crumbs", "notices"].map(byId);
const api = new Api();
/** @type {Me | null} */
let me = null;
let close = () => {};
let lostAt = 0;

const stream = new Stream(async () => {
  const { logins } = api;
  const found = await api.get("/login");
  if (found === null && logins === api.logins) api.onLoggedOut();
  return found !== null;
});
const board = new Board(api, stream);

/** @type {Context} */
const context = {
  api,
  stream,
  board,
  may: (scope) => me !== null && (me.scopes.includes(scope) || me.scopes.includes("admin")),
  say: (text) => notice(text, "note"),
  crumbs: (...parts) =>
    fill(
      crumbs,
      parts.flatMap((part) => [h("span", { class: "faint", "aria-hidden": "true" }, "/"), part]),
    ),
};

/** Show the view of the address. */
function route() {
  const hash = window.location.hash;
  if (hash && !hash.startsWith("#/")) return; // a place within the page
  close();
  close = () => {};
  withUnitsOf(null);
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  if (me === null) return;
  main.removeAttribute("aria-busy");
  const plant = /^#\/plant\/([^/]+)(?:\/incident\/(\d+)|\/(explore|retrain)(?:\?(.*))?)?$/.exec(hash);
  const name = plant && decoded(plant[1]);
  if (name && plant[2]) close = incidentView(main, context, name, Number(plant[2]));
  else if (name && plant[3] === "explore") close = exploreView(main, context, name, plant[4] ?? "");
  else if (name && plant[3]) close = retrainView(main, context, name);
  else if (name) close = plantView(main, context, name);
  else if (hash === "" || hash === "#/") close = overview(main, context);
  else fill(main, errorPage(new ApiError(404, "there is no such page"), "This address", route));
  showStatus();
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Ask who is logged in, then show the view; without an answer try again. */
async function start() {
  fill(main, skeleton(6));
  try {
    me = await api.get("/login");
    if (me === null) return api.onLoggedOut();
    if (me.csrf) api.csrf = me.csrf;
    route();
    if (!board.loaded) void board.load().catch(() => {}); // a view of one plant shows alarms of others at the top
  } catch (error) {
    fill(
      main,
      errorPage(error, "The page", () => void start()),
    );
  }
}

api.onLoggedOut = () => {
  const expired = me !== null;
  if (document.getElementById("login")) return;
  me = null;
  close();
  stream.close();
  board.clear();
  showStatus();
  context.crumbs();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  main.removeAttribute("aria-busy");
  close = loginView(main, api, expired, () => void start());
};

async function logOut() {
  me = null; // first: other requests may be refused before this one is answered
  await api.post("/logout").catch(() => {});
  api.onLoggedOut();
}

/** The right end of the top: alarms elsewhere, the connection, who is logged in. */
function showStatus() {
  const { alarm } = board.counts();
  document.title = alarm ? `(${alarm}) alarm · eccaht` : "eccaht";
  const kind = { open: "live", connecting: "connecting", lost: "lost", closed: "waiting" }[stream.state];
  const key = JSON.stringify([me, alarm, kind]);
  if (status.dataset.shown === key) return;
  status.dataset.shown = key;
  fill(
    status,
    me && alarm > 0 && h("a", { href: "#/", class: "top-alarms" }, mark("alarm", `${alarm} in alarm`)),
    me && mark(kind),
    me?.name && h("span", { class: "faint who" }, me.name),
    me?.by === "login" && h("button", { type: "button", class: "small", click: () => void logOut() }, "Log out"),
  );
}

/** The line below the top while the server does not answer. */
function showBanner() {
  const lost = me !== null && stream.state === "lost";
  if (lost && !lostAt) window.setTimeout(showBanner, LOST_AFTER);
  lostAt = lost ? lostAt || Date.now() : 0;
  const hidden = !lost || Date.now() - lostAt < LOST_AFTER;
  if (hidden !== banner.hidden) byId("news").textContent = hidden ? "Connected again" : "Disconnected from the server";
  banner.hidden = hidden;
  if (hidden) return;
  if (!banner.firstChild) {
    const again = h("button", { type: "button", class: "small", click: () => stream.retry() }, "Try now");
    fill(banner, mark("lost", "Disconnected"), h("span", { id: "lost-text" }), again);
  }
  const since = duration((Date.now() - stream.heard) / 1000);
  byId("lost-text").textContent = stream.full
    ? `Too many pages are open: close one. What you see is of ${since} ago. Trying again by itself.`
    : `The last message came ${since} ago; what you see is of then. Trying again by itself.`;
}

/**
 * A line below the head, which moves the page down and covers nothing; it goes by itself.
 * @param {string} text
 * @param {"note" | "alarm"} kind
 * @param {string} [href]
 */
function notice(text, kind, href) {
  byId(kind === "alarm" ? "alarms" : "news").textContent = text;
  const words = kind === "alarm" ? mark("alarm", text) : text;
  const element = h(
    "div",
    { class: kind === "alarm" ? "notice notice-alarm" : "notice" },
    href ? h("a", { href }, words) : words,
    h("button", { type: "button", class: "small", "aria-label": "Close", click: () => element.remove() }, "×"),
  );
  notices.append(element);
  while (notices.children.length > 4) notices.firstElementChild?.remove();
  window.setTimeout(() => element.remove(), kind === "alarm" ? 4 * NOTICE : NOTICE);
}

board.onAlarm = (row) =>
  notice(`New alarm in ${row.name}${row.named.length ? `: ${listed(row.named, 4)}` : ""}`, "alarm", link(row.name));
board.on(showStatus);
stream.on("state", () => {
  showStatus();
  showBanner();
});
window.setInterval(showBanner, 1000);
window.addEventListener("hashchange", () => {
  if (!window.location.hash.startsWith("#/")) return;
  route();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
// A browser allows few connections to one server: a hidden tab asks now and then instead.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.sleep();
  else stream.wake();
});
void start();
