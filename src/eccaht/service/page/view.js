// @ts-check
/**
 * A view of one plant: loaded, kept up by the stream from its first question on, loaded again after a gap, and left. A
 * plant that is gone is asked for again only if the user wants to or it is among all plants again.
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

const SOON = 300; // milliseconds between two questions after something has happened that people wait for
const OFTEN = new Set(["window", "source"]);
const TOPICS = /** @type {const} */ (["plants", "window", "event", "source", "comment", "resync"]);

/**
 * @template A
 * @param {HTMLElement} root
 * @param {Context} context
 * @param {object} options
 * @param {string} options.plant
 * @param {string} options.what is shown, for errors
 * @param {number} options.pause between two questions while nothing but windows come, in milliseconds
 * @param {() => Promise<A>} options.ask
 * @param {(answer: A, again: () => void) => Shown<A>} options.make
 * @returns {() => void} ends it
 */
export function keepUp(root, { board, stream }, { plant, what, pause, ask, make }) {
  /** @type {Shown<A> | null} */
  let shown = null;
  let left = false;
  let missing = false;
  let removed = false;
  let starts = 0;
  const load = oneAtATime(async () => {
    if (left || missing) return;
    const turn = starts;
    const late = () => left || missing || turn !== starts; // an answer about a plant that was removed since
    try {
      const answer = await ask();
      if (late()) return;
      if (!shown) {
        shown = make(answer, () => void load());
        fill(root, shown.element);
        stream.open(plant);
      }
      shown.update(answer);
    } catch (error) {
      if (late()) return;
      missing = /** @type {{status?: number}} */ (error).status === 404;
      if (missing || !shown) fail(error); // what is shown stays; the banner reports a server that is gone
    }
  });
  const fail = (/** @type {unknown} */ error) => {
    shown?.close();
    shown = null;
    if (removed || stream.plant !== plant) stream.open(null); // which has messages of all plants
    fill(root, errorPage(error, what, start));
  };
  const start = () => {
    missing = removed = false;
    starts += 1;
    fill(root, skeleton(8));
    void load();
  };
  const soon = throttled(load, SOON);
  const again = throttled(load, pause);
  const hear = (/** @type {Topic} */ topic, /** @type {any} */ message) => {
    if ((message?.plant ?? message?.name ?? plant) !== plant) return;
    if (topic === "plants" && message.removed) {
      missing = removed = true;
      fail(new ApiError(410, `the plant ${plant} was removed`));
    }
    if (missing) return;
    shown?.hear(topic, message);
    if (OFTEN.has(topic)) again();
    else soon();
  };
  const back = () => {
    if (removed && board.plants.has(plant)) start();
  };
  const ends = [...TOPICS.map((topic) => stream.on(topic, (message) => hear(topic, message))), board.on(back)];
  start();
  return () => {
    left = true;
    soon.stop();
    again.stop();
    ends.forEach((end) => end());
    shown?.close();
  };
}
