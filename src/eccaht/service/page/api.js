// @ts-check
/** Requests to the service: one place for the cookie's CSRF token, for errors in words and for time limits. */

const LIMIT = 20_000;

/** What the service or the network refused, with a line for people. */
export class ApiError extends Error {
  /**
   * @param {number} status of HTTP; 0 if there was no answer
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The requests of a page. */
export class Api {
  constructor() {
    this.csrf = "";
    /** How often a user logged in: that a request of before was refused says nothing of now. */
    this.logins = 0;
    /** Called when the service reports that no user is logged in. */
    this.onLoggedOut = () => {};
  }

  /**
   * @param {string} path below /api
   * @param {Record<string, string | number | string[] | null | undefined>} [query]
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async get(path, query = {}, signal) {
    return this.#send("GET", path + search(query), undefined, signal);
  }

  /**
   * @param {string} path below /api
   * @param {object} [body]
   * @returns {Promise<any>}
   */
  async post(path, body = {}) {
    return this.#send("POST", path, body);
  }

  /**
   * Log in with a token; throws if the service does not know it.
   * @param {string} token
   */
  async login(token) {
    const answer = await this.post("/login", { token });
    this.logins += 1;
    this.csrf = answer?.csrf ?? "";
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {object | undefined} body
   * @param {AbortSignal} [signal]
   */
  async #send(method, path, body, signal) {
    const limit = AbortSignal.timeout(LIMIT);
    const { logins } = this;
    /** @type {Record<string, string>} */
    const headers = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (method !== "GET" && this.csrf) headers["X-CSRF-Token"] = this.csrf;
    let response;
    try {
      response = await fetch(`/api${path}`, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        credentials: "same-origin",
        cache: "no-store",
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      const slow = limit.aborted;
      throw new ApiError(0, slow ? `no answer within ${LIMIT / 1000} seconds` : "the server cannot be reached");
    }
    if (response.ok) return response.status === 204 ? null : response.json();
    if (response.status === 401 && path !== "/login" && logins === this.logins) this.onLoggedOut();
    throw new ApiError(response.status, await reason(response));
  }
}

/**
 * The address of a plant, or of something that belongs to it.
 * @param {string} plant
 * @param {...(string | number)} rest
 */
export function plantPath(plant, ...rest) {
  return ["/plants", plant, ...rest].map((part, k) => (k ? encodeURIComponent(part) : part)).join("/");
}

/**
 * Why a request failed, in one line.
 * @param {Response} response
 */
async function reason(response) {
  const wait = response.headers.get("Retry-After");
  if (response.status === 429) return `the server is busy: try again in ${wait ?? "a few"} seconds`;
  try {
    const { detail } = await response.json();
    if (typeof detail === "string") return detail;
  } catch {
    // an answer that is no JSON says nothing that people should read
  }
  return `the server answered ${response.status} ${response.statusText}`.trim();
}

/**
 * @param {Record<string, string | number | string[] | null | undefined>} query
 */
function search(query) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) parts.append(name, String(one));
  }
  const text = parts.toString();
  return text ? `?${text}` : "";
}
