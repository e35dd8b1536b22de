// @ts-check
/** Elements made by functions: what comes from the server becomes text, never markup. */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Props */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element; a property that is a function listens to the event of its name, `true` is an attribute without value.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Props} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, props, children);
  return element;
}

/**
 * The same for drawings.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Props} [props]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function s(tag, props = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  dress(element, props, children);
  return element;
}

/**
 * @param {Element} element
 * @param {Props} props
 * @param {(Child | Child[])[]} children
 */
function dress(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Put children in the place of all that an element has.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * The element of index.html with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`index.html has no element ${id}`);
  return element;
}

/**
 * A function that never runs twice at the same time: called while it runs, it runs once more afterwards, so that the
 * last answer is never older than the last call; it fails if its last run does.
 * @param {() => Promise<void>} run
 * @returns {() => Promise<void>}
 */
export function oneAtATime(run) {
  /** @type {Promise<void> | null} */
  let running = null;
  let again = false;
  const untilDone = async () => {
    do {
      again = false;
      await run().catch((error) => {
        if (!again) throw error;
      });
    } while (again);
  };
  return () => {
    again = true;
    running ??= untilDone().finally(() => (running = null));
    return running;
  };
}

/**
 * A function that runs at once and then at most once in so many milliseconds, never twice at the same time.
 * @param {() => Promise<void> | void} run
 * @param {number | (() => number)} pause
 * @returns {{(): void, stop: () => void}}
 */
export function throttled(run, pause) {
  let timer = 0;
  let wanted = false;
  let stopped = false;
  const start = async () => {
    wanted = false;
    timer = -1;
    try {
      await run();
    } finally {
      timer = stopped ? -1 : window.setTimeout(again, typeof pause === "number" ? pause : pause());
    }
  };
  const again = () => {
    timer = 0;
    if (wanted) void start();
  };
  const call = () => {
    wanted = true;
    if (timer === 0 && !stopped) void start();
  };
  call.stop = () => {
    stopped = true;
    if (timer > 0) window.clearTimeout(timer);
  };
  return call;
}
