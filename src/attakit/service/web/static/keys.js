/* The key of each class: its own name if that is one key, else digits, then letters. */

const RESERVED = new Set(["n", "u"]);
const KEYS = [..."1234567890", ..."abcdefghijklmnopqrstuvwxyz"].filter((key) => !RESERVED.has(key));
let keys = [];

/** Classes called 0, 1, 2 … are answered with just these keys; anything else would lead to slips. */
export function assignKeys(classes) {
  const names = classes.map((name) => name.toLowerCase());
  const speak = new Set(names).size === names.length && names.every((name) => KEYS.includes(name));
  keys = speak ? names : KEYS.slice(0, classes.length);
}

/** The key of a class, by its index; undefined once the keys are used up. */
export const keyOf = (label) => keys[label];

/** The class of a key, or -1. */
export const classOf = (key) => keys.indexOf(key.toLowerCase());
