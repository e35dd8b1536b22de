// @ts-check
/** A view of one plant: loaded, kept up by the stream from its first question on, loaded again after a gap, and left. */

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
  let gone = false;
  const load = oneAtATime(async () => {
    if (gone) return;
    try {
      const answer = await ask();
      if (gone) return;
      if (!shown) {
        shown = make(answer, () => void load());
        fill(root, shown.element);
        stream.open(plant);
      }
      shown.update(answer);
    } catch (error) {
      const missing = /** @type {{status?: number}} */ (error).status === 404;
      if (gone || (shown && !missing)) return; // what is shown stays; the banner tells of a server that is gone
      shown?.close();
      shown = null;
      stream.open(null);
      fill(root, errorPage(error, what, start));
    }
  });
  const start = () => {
    fill(root, skeleton(8));
    void load();
  };
  const again = throttled(load, pause);
  const ends = TOPICS.map((topic) =>
    stream.on(topic, (message) => {
      const whose = message?.plant ?? message?.name ?? plant;
      if (whose !== plant) return;
      shown?.hear(topic, message);
      if (AT_ONCE.has(topic)) void load();
      else again();
    }),
  );
  start();
  return () => {
    gone = true;
    again.stop();
    ends.forEach((end) => end());
    shown?.close();
  };
}
