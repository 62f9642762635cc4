/* The queue of answers: stored in the browser until the server has them, across reloads and lost connections. */

const PREFIX = "attakit.answer.";

/** A unique key; works on plain http too, unlike randomUUID. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The key for undoing an answer: always the same for one answer, so that a retry changes nothing. */
export const undoKey = (key) => `${key}-undo`;

/** Each answer has its own entry, so that two tabs never overwrite each other's. */
export class Outbox {
  #annotator;
  #memory = new Map(); // used if the browser stores nothing
  #order = 0;

  constructor(annotator) {
    this.#annotator = annotator;
  }

  put(answer) {
    this.save({ ...answer, annotator: this.#annotator, at: Date.now(), order: this.#order++ });
  }

  save(answer) {
    try {
      localStorage.setItem(PREFIX + answer.key, JSON.stringify(answer));
    } catch {
      this.#memory.set(answer.key, answer);
    }
  }

  remove(key) {
    this.#memory.delete(key);
    try {
      localStorage.removeItem(PREFIX + key);
    } catch {
      // nothing is kept there either
    }
  }

  get(key) {
    return this.all().find((answer) => answer.key === key);
  }

  /** This annotator's answers, oldest first. */
  all() {
    return [...this.#stored(), ...this.#memory.values()]
      .filter((answer) => answer.annotator === this.#annotator)
      .sort((a, b) => a.at - b.at || a.order - b.order);
  }

  get size() {
    return this.all().length;
  }

  #stored() {
    try {
      return Object.keys(localStorage)
        .filter((name) => name.startsWith(PREFIX))
        .map((name) => JSON.parse(localStorage.getItem(name)))
        .filter(Boolean);
    } catch {
      return [];
    }
  }
}
