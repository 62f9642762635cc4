/* Which key stands for which class: the digits, then the letters that mean nothing else. */

const RESERVED = new Set(["n", "u"]);
const KEYS = [..."1234567890", ..."abcdefghijklmnopqrstuvwxyz"].filter((key) => !RESERVED.has(key));

/** The key of a class, by its index; undefined once the keys are used up. */
export function keyOf(label) {
  return KEYS[label];
}

/** The class of a key, or -1. */
export function classOf(key, classes) {
  const label = KEYS.indexOf(key.toLowerCase());
  return label < classes.length ? label : -1;
}
