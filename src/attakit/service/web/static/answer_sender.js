/* Sends stored answers to the server in order, and retries until it has them. */

import { get, post, Refused, Unreachable } from "./api.js";
import { undoKey } from "./outbox.js";

const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 15_000;

export class AnswerSender {
  state = "online"; // or "offline", "busy", "logged out"
  #outbox;
  #report;
  #onState;
  #holding;
  #running = null;
  #pause = FIRST_PAUSE;
  #timer = 0;

  /**
   * `report(answer, outcome, error)` is called for each answer, `onState()` on every change of state;
   * `holding()` returns the questions that the page holds.
   */
  constructor(outbox, report, onState, holding) {
    this.#holding = holding;
    this.#outbox = outbox;
    this.#report = report;
    this.#onState = onState;
    addEventListener("online", () => this.send());
    addEventListener("offline", () => this.lost(new Unreachable()));
  }

  /** Send all answers; resolves when none is left or none can be sent. */
  send() {
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Record that a request failed, here or elsewhere on the page, and try again later. */
  lost(error) {
    if (error instanceof Refused && error.needsLogin) this.#become("logged out");
    else this.#become(error instanceof Refused ? "busy" : "offline");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.send(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  /** Record that a request was answered. */
  reached() {
    this.#pause = FIRST_PAUSE;
    this.#become("online");
  }

  async #sendAll() {
    clearTimeout(this.#timer);
    try {
      for (let answer; (answer = this.#outbox.all()[0]); ) await this.#sendOne(answer);
      if (this.state !== "online") await this.#ping();
    } catch (error) {
      this.lost(error);
      return false;
    }
    this.reached();
    return true;
  }

  /** Without answers to send, only a request shows whether the server is up. */
  async #ping() {
    await get("/v1/classes");
  }

  async #sendOne(answer) {
    // Marked first: from now on the server may have it, even without a response.
    this.#outbox.save({ ...answer, tried: true });
    try {
      const { outcome } = await this.#post(answer);
      const isFinal = !(await this.#withdraw(answer)) && outcome !== "late";
      this.#report(answer, isFinal ? "final" : outcome, null);
    } catch (error) {
      if (!(error instanceof Refused) || error.passing || error.needsLogin) throw error;
      this.#report(answer, null, error); // it will never be accepted, and would block the others
    }
    this.#outbox.remove(answer.key);
    this.#onState();
  }

  #post({ question, key, kind, label, comment, flag }) {
    const remarks = { ...(comment && { comment }), ...(flag && { flag }) };
    return post(`/v1/questions/${question}/answer`, { key, kind, label, ...remarks }, { keepalive: true });
  }

  /** Undo an answer that the server may or may not have; false if that is refused. */
  async #withdraw({ key }) {
    if (!this.#outbox.get(key)?.withdrawn) return true;
    try {
      await post("/v1/questions/undo", { key: undoKey(key), answer: key, besides: this.#holding() });
    } catch (error) {
      if (error.status === 409) return false;
      throw error;
    }
    return true;
  }

  /** Send the rest while the page is closing. Duplicates are harmless. */
  leave() {
    if (this.state !== "online") return;
    for (const answer of this.#outbox.all()) if (!answer.withdrawn) this.#post(answer).catch(() => {});
  }

  #become(state) {
    this.state = state;
    this.#onState();
  }
}
