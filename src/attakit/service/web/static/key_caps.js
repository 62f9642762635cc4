/* A class with its key, as buttons and the guide show it. */

import { make } from "./dom.js";
import { keyOf } from "./keys.js";

/** The key of a class and its name; a name that is its own key is shown as a key. */
export function keyAndName(label, name) {
  const key = keyOf(label);
  const speaks = key === name.toLowerCase();
  return [
    key && !speaks ? make("kbd", {}, key) : null,
    make(speaks ? "kbd" : "span", { class: "word" }, make("bdi", {}, name)),
  ];
}
