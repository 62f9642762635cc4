/* Answers on their way: kept in the browser until the server has taken them, through reloads and lost connections. */

const PREFIX = "attakit.answer.";

/** A name that no other answer has; works on plain http too, where randomUUID does not. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Of taking an answer back: always the same for one answer, so that a second try does nothing more. */
export const undoKey = (key) => `${key}-undo`;

/** Each answer has an entry of its own, so that two tabs never overwrite each other's. */
export class Outbox {
  #annotator;
  #memory = new Map(); // where the browser keeps nothing
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
