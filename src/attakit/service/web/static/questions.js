/* The questions that this page holds: the current one, and the next ones with their pictures. */

import { post, serverTime } from "./api.js";

const AHEAD = 2;
const RETRY = 1_000; // milliseconds before a missing picture is requested again
const ROUNDING = 1; // seconds by which the server's time may be rounded down

function loadImage(address) {
  const image = new Image();
  image.alt = "The image to label";
  image.src = address;
  const again = () => setTimeout(() => (image.src = address), RETRY);
  image.addEventListener("error", again, { once: true });
  return image;
}

/** A question, its picture, and the end of its lease on this machine's steady clock. */
class Held {
  constructor(lease) {
    this.question = lease.question;
    this.guesses = lease.guesses;
    this.proposed = lease.proposed ?? null; // class of a yes/no question
    this.content = lease.content ?? null; // what to show with a picture, or instead of it
    this.image = lease.image ? loadImage(lease.image) : null;
    this.renewed(lease);
  }

  renewed(lease) {
    this.length = Math.max(0, lease.until - serverTime() - ROUNDING);
    this.ends = performance.now() / 1000 + this.length;
  }

  get remaining() {
    return this.ends - performance.now() / 1000;
  }
}

export class Questions {
  #held = [];
  #filling = null;
  counts = {}; // the server's last numbers: open, left (null: no limit)
  answeredBefore = null; // by this person, as the server said before anything could be answered here

  get shown() {
    return this.#held[0];
  }

  get numbers() {
    return this.#held.map((held) => held.question);
  }

  get size() {
    return this.#held.length;
  }

  /** Remove the current question: it is answered. */
  shift() {
    return this.#held.shift();
  }

  /** Put a question back in front, because its answer was undone. */
  unshift(held) {
    this.#held = [held, ...this.#held.filter((other) => other.question !== held.question)];
  }

  /** A lease from an undo, for a question that may be known. */
  accept(lease, known) {
    this.answeredBefore ??= lease.answered_by_you + 1; // it was one more until just now
    this.#note(lease);
    const held = known?.question === lease.question ? known : new Held(lease);
    held.renewed(lease);
    this.unshift(held);
  }

  /** Fetch until enough are held. `answered` are questions with pending answers. */
  fill(answered) {
    this.#filling ??= this.#fill(answered).finally(() => {
      this.#filling = null;
    });
    return this.#filling;
  }

  async #fill(answered) {
    while (this.#held.length <= AHEAD) {
      const besides = [...this.numbers, ...answered()];
      const lease = await this.#lease(besides);
      if (lease === null || besides.includes(lease.question) || answered().includes(lease.question)) return;
      this.#held.push(new Held(lease));
    }
  }

  async #lease(besides) {
    const lease = await post("/v1/questions/lease", { besides });
    if (lease === null) return null;
    this.answeredBefore ??= lease.answered_by_you;
    this.#note(lease);
    return lease;
  }

  #note(lease) {
    this.counts = { open: lease.open, left: lease.budget_left };
  }

  /** Renew the leases; drop questions that another person got meanwhile. */
  async renew(all = false) {
    for (const held of this.#held.filter((held) => all || held.remaining < held.length / 2)) {
      const others = this.#held.filter((other) => other !== held).map((other) => other.question);
      const lease = await this.#lease(others);
      if (lease?.question === held.question) held.renewed(lease);
      else this.#replace(held, lease);
    }
  }

  #replace(held, lease) {
    const place = this.#held.indexOf(held);
    if (place < 0) return;
    const known = lease === null || this.#held.some((other) => other.question === lease.question);
    this.#held.splice(place, 1, ...(known ? [] : [new Held(lease)]));
  }

  /** Drop expired questions. */
  dropEnded() {
    this.#held = this.#held.filter((held) => held.remaining > 0);
  }

  /** Release all questions for others; also while the page is closing. */
  release() {
    for (const { question } of this.#held.splice(0)) {
      post(`/v1/questions/${question}/release`, {}, { keepalive: true }).catch(() => {});
    }
  }
}
