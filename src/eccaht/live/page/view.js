// @ts-check
/**
 * A view of one plant: loaded, kept up by the stream from its first question on, loaded again after a gap, and left. A
 * plant that is gone is asked for again only if somebody wants to or the stream tells that it is back.
 */

import { ApiError } from "./api.js";
import { fill, oneAtATime, throttled } from "./dom.js";
import { errorPage, skeleton } from "./parts.js";

/** @typedef {import("./parts.js").Context} Context */
/** @typedef {import("./stream.js").Topic} Topic */

/**
 * What is shown of an answer of the service.
 * @template A
 * @typedef {object} Shown
 * @property {HTMLElement} element
 * @property {(answer: A) => void} update
 * @property {(topic: Topic, message: any) => void} hear a message about the plant, before the answer is asked for again
 * @property {() => void} close
 */

const AT_ONCE = new Set(["comment", "resync"]);
const TOPICS = /** @type {const} */ (["plants", "window", "event", "source", "comment", "resync"]);

/**
 * @template A
 * @param {HTMLElement} root
 * @param {Context} context
 * @param {object} options
 * @param {string} options.plant
 * @param {string} options.what is shown, for errors
 * @param {number} options.pause between two questions, in milliseconds
 * @param {() => Promise<A>} options.ask
 * @param {(answer: A, again: () => void) => Shown<A>} options.make
 * @returns {() => void} ends it
 */
export function keepUp(root, { stream }, { plant, what, pause, ask, make }) {
  /** @type {Shown<A> | null} */
  let shown = null;
  let left = false;
  let missing = false;
  let removed = false;
  const load = oneAtATime(async () => {
    if (left || missing) return;
    try {
      const answer = await ask();
      if (left || missing) return;
      if (!shown) {
        shown = make(answer, () => void load());
        fill(root, shown.element);
        stream.open(plant);
      }
      shown.update(answer);
    } catch (error) {
      if (left || missing) return;
      missing = /** @type {{status?: number}} */ (error).status === 404;
      if (missing || !shown) fail(error); // what is shown stays; the banner tells of a server that is gone
    }
  });
  const fail = (/** @type {unknown} */ error) => {
    shown?.close();
    shown = null;
    if (stream.plant !== plant) stream.open(null);
    fill(root, errorPage(error, what, start));
  };
  const start = () => {
    missing = removed = false;
    fill(root, skeleton(8));
    void load();
  };
  const again = throttled(load, pause);
  const ends = TOPICS.map((topic) =>
    stream.on(topic, (message) => {
      const whose = message?.plant ?? message?.name ?? plant;
      if (whose !== plant) return;
      if (topic === "plants" && message.removed) {
        missing = removed = true;
        fail(new ApiError(404, `the plant ${plant} was removed`));
        return;
      }
      if (topic === "plants" && removed) start();
      if (missing) return;
      shown?.hear(topic, message);
      if (AT_ONCE.has(topic)) void load();
      else again();
    }),
  );
  start();
  return () => {
    left = true;
    again.stop();
    ends.forEach((end) => end());
    shown?.close();
  };
}
