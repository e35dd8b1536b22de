// @ts-check
/** What every view is made of: sections, waiting, nothing there, errors, dialogs. */

import { fill, h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./api.js").ApiError} ApiError */

const LONGEST_COMMENT = 4000;
const RETRY = 2000;
/** What to do about an answer, by its status; 0 if there was none. */
const TODO = new Map([
  [0, "Check that eccaht serve is running and that this machine reaches it. This page tries again by itself."],
  [403, "Log in with a token that has the scope, or ask whoever manages the tokens."],
  [404, "It may have been removed, or the address is mistyped."],
  [410, "It is shown again as soon as it is back."],
]);

/**
 * What views are handed.
 * @typedef {object} Context
 * @property {import("./api.js").Api} api
 * @property {import("./stream.js").Stream} stream
 * @property {import("./board.js").Board} board
 * @property {(scope: string) => boolean} may
 * @property {(text: string) => void} say a line about what was done
 * @property {(...crumbs: Child[]) => void} crumbs
 */

/**
 * A part of a page with its heading.
 * @param {string} title
 * @param {Child[]} children
 * @param {Child} [aside] beside the heading
 */
export function section(title, children, aside) {
  const id = `s-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return h(
    "section",
    { "aria-labelledby": id },
    h("div", { class: "section-head" }, h("h2", { id }, title), aside),
    children,
  );
}

/** Grey lines in the place of what is on its way. */
export function skeleton(lines = 5) {
  const rows = Array.from({ length: lines }, () => h("div", { class: "skeleton-line" }));
  return h("div", { class: "skeleton", role: "status" }, h("span", { class: "hidden-text" }, "Loading"), rows);
}

/**
 * A page for something that went wrong: what, why, what to do.
 * @param {unknown} error
 * @param {string} what could not be shown
 * @param {() => void} retry
 */
export function errorPage(error, what, retry) {
  const status = /** @type {ApiError} */ (error).status ?? -1;
  const message = reason(error);
  const todo = TODO.get(status) ?? "Try again. If it stays, the log of the server has more.";
  const page = h(
    "div",
    { class: "state-page", role: "alert" },
    h("h1", {}, `${what} cannot be shown`),
    h("p", {}, `${message[0]?.toUpperCase() ?? ""}${message.slice(1)}.`),
    h("p", { class: "faint" }, todo),
    h(
      "p",
      { class: "buttons" },
      h("button", { type: "button", class: "primary", click: retry }, "Try again"),
      h("a", { class: "button", href: "#/" }, "All plants"),
    ),
  );
  if (status === 0) window.setTimeout(() => page.isConnected && retry(), RETRY);
  return page;
}

/**
 * A dialog with a form; it closes once `done` has been carried out, and shows why if it was not.
 * @param {object} options
 * @param {string} options.title
 * @param {Child[]} options.body
 * @param {string} options.submit the word on its button
 * @param {(data: FormData) => Promise<void>} options.done
 */
export function ask({ title, body, submit, done }) {
  const before = document.activeElement;
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = h("button", { type: "submit", class: "primary" }, submit);
  const form = h(
    "form",
    {
      method: "dialog",
      submit: async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        button.disabled = true;
        problem.hidden = true;
        try {
          await done(new FormData(form));
          dialog.close();
        } catch (error) {
          fill(problem, `Not done: ${reason(error)}`);
          problem.hidden = false;
        } finally {
          button.disabled = false;
        }
      },
    },
    h("h2", {}, title),
    body,
    problem,
    h("p", { class: "buttons" }, button, h("button", { type: "button", click: () => dialog.close() }, "Cancel")),
  );
  const dialog = h("dialog", { "aria-label": title }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    const main = document.getElementById("main");
    const place = before?.isConnected ? before : (labelled(main, before?.textContent) ?? main);
    if (place instanceof HTMLElement) place.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * A field for a comment.
 * @param {(text: string) => Promise<void>} done
 */
export function commentForm(done) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const field = h("textarea", {
    rows: 2,
    required: true,
    maxlength: LONGEST_COMMENT,
    "aria-label": "Comment",
    placeholder: "What was found, what was done",
  });
  const button = h("button", { type: "submit" }, "Comment");
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!field.value.trim()) return;
    button.disabled = true;
    problem.hidden = true;
    try {
      await done(field.value.trim());
      field.value = "";
    } catch (error) {
      problem.textContent = `Not kept: ${reason(error)}`;
      problem.hidden = false;
    } finally {
      button.disabled = false;
    }
  };
  return h("form", { class: "comment", submit }, field, problem, h("p", { class: "buttons" }, button));
}

/**
 * Make what an element shows again only if its data have changed; what had the focus has it afterwards.
 * @param {HTMLElement} element
 * @param {unknown} data
 * @param {() => Child | Child[]} make
 */
export function once(element, data, make) {
  const key = JSON.stringify(data);
  if (element.dataset.shown === key) return;
  element.dataset.shown = key;
  const focused = element.contains(document.activeElement) ? document.activeElement?.textContent : null;
  fill(element, make());
  if (focused === null) return;
  const again = labelled(element, focused);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/**
 * The link or button with this text: one that was made again is another element.
 * @param {HTMLElement | null} element
 * @param {string | null | undefined} text
 */
function labelled(element, text) {
  return [...(element?.querySelectorAll("a, button") ?? [])].find((one) => one.textContent === text);
}

/**
 * Why something failed, in a line.
 * @param {unknown} error
 */
export function reason(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * The hash of a plant or of one of its incidents.
 * @param {string} plant
 * @param {number | null} [incident]
 */
export function link(plant, incident = null) {
  return `#/plant/${encodeURIComponent(plant)}${incident === null ? "" : `/incident/${incident}`}`;
}
