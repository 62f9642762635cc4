/* The questions that this page holds: the one that is shown, and the next ones, fetched ahead with their pictures. */

import { post, serverTime } from "./api.js";

const AHEAD = 2;
const RETRY = 1_000; // milliseconds, after which a picture that did not come is requested again
const ROUNDING = 1; // second, by which the server's time may be rounded down

function loadImage(address) {
  const image = new Image();
  image.alt = "The image to label";
  image.src = address;
  const again = () => setTimeout(() => (image.src = address), RETRY);
  image.addEventListener("error", again, { once: true });
  return image;
}

/** A question with its picture on the way, and when its lease ends by this machine's steady clock. */
class Held {
  constructor(lease) {
    this.question = lease.question;
    this.guesses = lease.guesses;
    this.proposed = lease.proposed ?? null; // class of a yes/no question
    this.content = lease.content ?? null; // what there is to see besides a picture, or in its place
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
  counts = {}; // the server's last figures: open, left (null: no limit)
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

  /** Take the shown question away: it is answered. */
  shift() {
    return this.#held.shift();
  }

  /** Put a question back in front, because its answer was undone. */
  unshift(held) {
    this.#held = [held, ...this.#held.filter((other) => other.question !== held.question)];
  }

  /** A lease that the server gave unasked, for a question that may be known. */
  accept(lease, known) {
    this.answeredBefore ??= lease.answered_by_you + 1; // it was one more until just now
    this.#note(lease);
    const held = known?.question === lease.question ? known : new Held(lease);
    held.renewed(lease);
    this.unshift(held);
  }

  /** Fetch until enough are held. `answered` are questions whose answers are still on their way. */
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

  /** Ask for more time for what is held; what another person got meanwhile is dropped. */
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

  /** Drop what has run out of time. */
  dropEnded() {
    this.#held = this.#held.filter((held) => held.remaining > 0);
  }

  /** Give everything back, so that others need not wait; also while the page is closing. */
  release() {
    for (const { question } of this.#held.splice(0)) {
      post(`/v1/questions/${question}/release`, {}, { keepalive: true }).catch(() => {});
    }
  }
}
