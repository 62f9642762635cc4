/* A comment and a flag, sent with the next answer. */

import { find } from "./dom.js";

const field = () => find("#comment");
const flag = () => find("#flag");
const isFlagged = () => flag().getAttribute("aria-pressed") === "true";

export function toggleFlag(on = !isFlagged()) {
  flag().setAttribute("aria-pressed", String(on));
}

export function openComment() {
  field().hidden = false;
  field().focus();
}

/** What was remarked about the question on the screen; the next one starts empty. */
export function takeRemarks() {
  const comment = field().value.trim();
  const remarks = { ...(comment && { comment }), ...(isFlagged() && { flag: true }) };
  clearRemarks();
  return remarks;
}

export function clearRemarks() {
  field().value = "";
  field().hidden = true;
  toggleFlag(false);
}

export function listenForRemarks() {
  flag().addEventListener("click", () => toggleFlag());
  find("#comment-button").addEventListener("click", openComment);
  field().addEventListener("keydown", (event) => {
    if (event.key === "Escape") clearRemarks();
    if (event.key === "Escape" || event.key === "Enter") field().blur();
  });
}
