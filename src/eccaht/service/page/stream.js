// @ts-check
/**
 * What changes, as the server sends it. A connection that is lost is made again for ever. Whatever happened before the
 * first message of a connection was not received: `resync` then makes the views ask for everything they show, and so
 * it does whenever the server reports that messages were left out.
 */

const MESSAGES = /** @type {const} */ (["plants", "window", "event", "source", "comment", "heartbeat"]);
const SILENCE = 30_000; // three heartbeats: the connection is dead though no error was reported
const PAUSES = [500, 1000, 2000, 3000];

/** @typedef {typeof MESSAGES[number] | "resync" | "state"} Topic */
/** @typedef {"closed" | "connecting" | "open" | "lost"} StreamState */

/** One connection to /api/stream, for all plants or for one. */
export class Stream {
  /** @param {() => Promise<boolean>} mayConnect asked before connecting again: false if no user is logged in */
  constructor(mayConnect) {
    this.mayConnect = mayConnect;
    /** @type {StreamState} */
    this.state = "closed";
    /** When the last message came, in milliseconds of the browser's clock. */
    this.heard = Date.now();
    /** @type {EventSource | null} */
    this.source = null;
    /** @type {string | null} */
    this.plant = null;
    this.tries = 0;
    /** Whether the server refused the connection because too many pages are open. */
    this.full = false;
    this.asleep = false;
    this.timer = 0;
    /** @type {Map<Topic, Set<(data: any) => void>>} */
    this.listeners = new Map();
    window.setInterval(() => this.#check(), 5000);
    window.addEventListener("online", () => this.retry());
  }

  /**
   * Listen; the answer ends it.
   * @param {Topic} topic
   * @param {(data: any) => void} listener
   * @returns {() => void}
   */
  on(topic, listener) {
    const all = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, all.add(listener));
    return () => all.delete(listener);
  }

  /**
   * Connect for one plant, or for all of them (null); nothing happens if that is connected already.
   * @param {string | null} plant
   */
  open(plant) {
    if (this.state !== "closed" && this.plant === plant) return;
    this.close();
    this.plant = plant;
    this.tries = 0;
    this.heard = Date.now();
    this.#connect();
  }

  /** End the connection for as long as the tab is hidden. */
  sleep() {
    if (this.state === "closed") return;
    this.close();
    this.asleep = true;
  }

  /** Connect again after `sleep`. */
  wake() {
    if (!this.asleep) return;
    this.asleep = false;
    this.#connect();
  }

  /** End the connection until `open`. */
  close() {
    this.asleep = false;
    window.clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.#become("closed");
  }

  /** Try again now instead of after the pause. */
  retry() {
    if (this.state !== "lost") return;
    window.clearTimeout(this.timer);
    void this.#again();
  }

  #connect() {
    const query = this.plant === null ? "" : `?plant=${encodeURIComponent(this.plant)}`;
    const source = new EventSource(`/api/stream${query}`);
    this.source = source;
    if (this.state !== "lost") this.#become("connecting");
    source.onerror = () => {
      if (source !== this.source) return;
      const refused = source.readyState === EventSource.CLOSED; // by an answer: the browser does not say by which
      this.#lost(refused);
      if (refused) void this.#ask(source.url);
    };
    for (const topic of MESSAGES) source.addEventListener(topic, (message) => this.#take(topic, message));
    source.addEventListener("resync", () => {
      if (!this.#hear()) this.#publish("resync", null);
    });
  }

  /** A message has come; says whether it is the first one of its connection: from now on the server leaves none out. */
  #hear() {
    this.heard = Date.now();
    if (this.state === "open") return false;
    this.tries = 0;
    this.full = false;
    this.#become("open");
    this.#publish("resync", null);
    return true;
  }

  /** @param {boolean} refused whether it was by an answer of the server, of which more is asked for */
  #lost(refused = false) {
    this.source?.close();
    this.source = null;
    const pause = PAUSES[Math.min(this.tries, PAUSES.length - 1)];
    this.tries += 1;
    this.full &&= refused;
    this.#pause(pause);
    this.#become("lost");
  }

  /**
   * Ask why the server refused a stream; one that is full says when to come back.
   * @param {string} url
   */
  async #ask(url) {
    const limit = new AbortController();
    const answer = await fetch(url, { cache: "no-store", signal: limit.signal }).catch(() => null);
    const seconds = Number(answer?.headers.get("Retry-After"));
    limit.abort(); // the stream, if there is one after all
    if (this.state !== "lost" || this.source) return;
    this.full = answer?.status === 429;
    if (this.full && seconds > 0) this.#pause(1000 * seconds);
    this.#publish("state", this.state);
  }

  /** @param {number} pause in milliseconds until the next try */
  #pause(pause) {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.#again(), pause * (0.75 + Math.random() / 2)); // not all pages at once
  }

  async #again() {
    const plant = this.plant;
    const may = await this.mayConnect().catch(() => null);
    if (this.state !== "lost" || this.plant !== plant || this.source) return;
    if (may === null) this.#lost();
    else if (may) this.#connect();
    else this.close();
  }

  #check() {
    if (this.state === "open" && Date.now() - this.heard > SILENCE) this.#lost();
  }

  /**
   * @param {Topic} topic
   * @param {MessageEvent<string>} message
   */
  #take(topic, message) {
    this.#hear();
    if (topic !== "heartbeat") this.#publish(topic, JSON.parse(message.data));
  }

  /** @param {StreamState} state */
  #become(state) {
    if (state === this.state) return;
    this.state = state;
    this.#publish("state", state);
  }

  /**
   * @param {Topic} topic
   * @param {unknown} data
   */
  #publish(topic, data) {
    for (const listener of this.listeners.get(topic) ?? []) listener(data);
  }
}
