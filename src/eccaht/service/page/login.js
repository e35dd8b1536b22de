// @ts-check
/** Logging in with a token. The address stays as it is, so that one is back where one was. */

import { fill, h } from "./dom.js";
import { reason } from "./parts.js";

/**
 * @param {HTMLElement} root
 * @param {import("./api.js").Api} api
 * @param {boolean} expired whether a user was logged in until now
 * @param {() => void} done
 * @returns {() => void}
 */
export function loginView(root, api, expired, done) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const field = h("input", {
    type: "password",
    name: "token",
    id: "token",
    required: true,
    autocomplete: "current-password",
    spellcheck: "false",
  });
  const button = h("button", { type: "submit", class: "primary" }, "Log in");
  const form = h(
    "form",
    {
      id: "login",
      class: "state-page",
      submit: async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        button.disabled = true;
        problem.hidden = true;
        try {
          await api.login(field.value.trim());
          done();
        } catch (error) {
          problem.textContent = `Not logged in: ${reason(error)}`;
          problem.hidden = false;
          field.select();
        } finally {
          button.disabled = false;
        }
      },
    },
    h("h1", {}, "Log in"),
    expired && h("p", {}, "Your session has ended, or its token was revoked. Log in again to go on where you were."),
    h("label", { for: "token" }, "Token"),
    field,
    problem,
    h("p", { class: "buttons" }, button),
    h(
      "p",
      { class: "faint" },
      "Tokens are made on the server: ",
      h("code", {}, "eccaht token create NAME --scope read"),
      ". With the scope operate one may also acknowledge, shelve and comment.",
    ),
  );
  fill(root, form);
  field.focus();
  return () => form.remove();
}
