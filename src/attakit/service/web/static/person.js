/* The annotator: from the session; on an open local server the person is asked once. */

import { speakAs } from "./api.js";
import { find, write } from "./dom.js";

const KEPT = "attakit.name";

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(name) {
  try {
    localStorage.setItem(KEPT, name);
  } catch {
    // asked again after a reload, then
  }
}

function ask() {
  const dialog = find("#ask-name");
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  find("#name").value = kept() ?? "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(find("#name").value.trim()), { once: true });
  });
}

/** The annotator's name, asked for if it is not known. */
export async function identify() {
  if (!("open" in document.body.dataset)) return document.body.dataset.name;
  let name = kept();
  while (!name) name = await ask();
  keep(name);
  speakAs(name);
  showPerson(name);
  return name;
}

function showPerson(name) {
  const person = find("#person");
  person.hidden = false;
  write(person.querySelector("b"), name);
  person.querySelector("button").addEventListener("click", async () => {
    const next = await ask();
    if (!next || next === name) return;
    keep(next);
    location.reload(); // this releases questions held under the old name
  });
}
