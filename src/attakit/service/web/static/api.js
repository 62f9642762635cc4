/* Requests to the service: JSON in and out, the CSRF token, two kinds of failure. */

const TIMEOUT = 15_000;
const csrf = document.querySelector('meta[name="csrf-token"]')?.content;
let annotator = null;
let ahead = 0; // seconds by which the server's clock is ahead

/** The time on the server, which leases and events use. */
export function serverTime() {
  return Date.now() / 1000 + ahead;
}

/** The server refused the request. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }

  /** True if the same request may succeed later. */
  get passing() {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }

  get needsLogin() {
    return this.status === 401 || this.status === 403;
  }
}

/** No answer came. */
export class Unreachable extends Error {}

/** On an open local server, the name that goes with the answers. */
export function speakAs(name) {
  annotator = name;
}

function headers(body) {
  const given = { Accept: "application/json" };
  if (body !== undefined) given["Content-Type"] = "application/json";
  if (csrf) given["X-CSRF-Token"] = csrf;
  if (annotator) given["X-Annotator"] = encodeURIComponent(annotator); // headers allow few characters
  return given;
}

async function reach(method, path, body, keepalive) {
  try {
    return await fetch(path, {
      method,
      keepalive,
      headers: headers(body),
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT),
    });
  } catch (error) {
    throw new Unreachable(String(error));
  }
}

async function content(response) {
  try {
    return await response.json();
  } catch (error) {
    // Not our service: another log-in page, or a truncated response.
    if (response.ok) throw new Unreachable(String(error));
    return {};
  }
}

/** Send a GET request; `null` if the server has nothing. */
async function call(method, path, body, { keepalive = false } = {}) {
  const response = await reach(method, path, body, keepalive);
  const sent = Date.parse(response.headers.get("Date"));
  if (sent) ahead = (sent - Date.now()) / 1000;
  if (response.status === 204) return null;
  const given = await content(response);
  if (!response.ok) throw new Refused(response.status, given.error ?? `The server answered ${response.status}.`);
  return given;
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}, options) => call("POST", path, body, options);
