/* Brings kept answers to the server, one after the other, again and again until it has them. */

import { get, post, Refused, Unreachable } from "./api.js";
import { undoKey } from "./outbox.js";

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;

export class Courier {
  state = "online"; // or "offline", "busy", "logged out"
  #outbox;
  #report;
  #onState;
  #running = null;
  #pause = FIRST_PAUSE;
  #timer = 0;

  /** `report(answer, outcome, error)` is told about each answer, `onState()` whenever something changed. */
  constructor(outbox, report, onState) {
    this.#outbox = outbox;
    this.#report = report;
    this.#onState = onState;
    addEventListener("online", () => this.send());
    addEventListener("offline", () => this.lost(new Unreachable()));
  }

  /** Send all there is; resolves when nothing is left or nothing can be sent. */
  send() {
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Note that a request failed, here or elsewhere on the page, and try again later. */
  lost(error) {
    if (error instanceof Refused && error.needsLogin) this.#become("logged out");
    else this.#become(error instanceof Refused ? "busy" : "offline");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.send(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  /** Note that a request was answered. */
  reached() {
    this.#pause = FIRST_PAUSE;
    this.#become("online");
  }

  async #sendAll() {
    clearTimeout(this.#timer);
    try {
      for (let answer; (answer = this.#outbox.all()[0]); ) await this.#sendOne(answer);
      if (this.state !== "online") await this.#knock();
    } catch (error) {
      this.lost(error);
      return false;
    }
    this.reached();
    return true;
  }

  /** With nothing to send, only asking tells whether the server is there. */
  async #knock() {
    await get("/v1/classes");
  }

  async #sendOne(answer) {
    // Marked first: from now on the server may have it, even if we never hear so.
    this.#outbox.save({ ...answer, tried: true });
    try {
      const { key, kind, label } = answer;
      const { outcome } = await post(`/v1/questions/${answer.question}/answer`, { key, kind, label });
      await this.#withdraw(answer);
      this.#report(answer, outcome, null);
    } catch (error) {
      if (!(error instanceof Refused) || error.passing || error.needsLogin) throw error;
      this.#report(answer, null, error); // it will never be taken: keeping it would block the others
    }
    this.#outbox.remove(answer.key);
    this.#onState();
  }

  /** An answer that was undone while nobody could say whether the server had it. */
  async #withdraw(answer) {
    if (this.#outbox.get(answer.key)?.withdrawn) {
      await post("/v1/questions/undo", { key: undoKey(answer.key), besides: [] });
    }
  }

  #become(state) {
    this.state = state;
    this.#onState();
  }
}
