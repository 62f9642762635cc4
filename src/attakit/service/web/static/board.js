/* Shows a question: the picture, the model's guesses and every class, each with its key. */

import { find, make, sharpen } from "./dom.js";
import { keyAndName } from "./key_caps.js";
import { assignKeys } from "./keys.js";
import { aboutView, sampleView } from "./sample_view.js";
import { percent } from "./words.js";
import { resetZoom } from "./zoom.js";

const SHORT = 3; // most letters on small buttons
const MANY = 16; // classes from which a search field helps

let names = [];

/** Buttons for all classes, created once. They never move, so that people learn where they are. */
export function showClasses(classes, answer) {
  names = classes;
  assignKeys(classes);
  const buttons = classes.map((name, label) =>
    make("li", {}, make("button", { type: "button", "data-label": label, title: name, onclick: () => answer(label) },
      ...keyAndName(label, name))));
  find("#classes").replaceChildren(...buttons);
  const short = classes.every((name) => name.length <= SHORT);
  for (const list of ["#classes", "#guesses"]) find(list).classList.toggle("short", short);
  const search = find("#find");
  search.hidden = classes.length < MANY;
  search.addEventListener("input", () => filter(classes, buttons, search.value));
  search.addEventListener("keydown", (event) => {
    const best = bestMatch(classes, search.value);
    if (event.key === "Enter" && best >= 0) leave(search, () => answer(best));
    else if (event.key === "Escape") leave(search, () => {});
  });
}

const plain = (text) => text.trim().toLowerCase();
const matches = (name, text) => plain(name).includes(plain(text));

/** The class that Enter chooses: by exact name, else by beginning, else by any part of the name. */
function bestMatch(classes, text) {
  const wanted = plain(text);
  if (!wanted) return -1;
  const tests = [(name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)];
  const found = tests.map((test) => classes.findIndex((name) => test(plain(name))));
  return found.find((label) => label >= 0) ?? -1;
}

function filter(classes, buttons, text) {
  const best = bestMatch(classes, text);
  buttons.forEach((button, label) => {
    button.hidden = !matches(classes[label], text);
    button.firstChild.classList.toggle("best", label === best);
  });
}

function leave(search, then) {
  search.value = "";
  search.dispatchEvent(new Event("input"));
  search.blur();
  then();
}

/** A name inside a sentence, isolated from the sentence's writing direction. */
const named = (name) => make("bdi", {}, name);

/** Ask whether the proposed class is right; false if the question asks for the class. */
function showProposal(held) {
  const asks = held.proposed !== null;
  find("#yes-no").hidden = !asks;
  find("#guessing").hidden = asks;
  find("#none").hidden = asks;
  if (!asks) return false;
  find("#yes-no-title").replaceChildren("Is this “", named(names[held.proposed]), "”?");
  const guess = held.guesses.find(({ label }) => label === held.proposed);
  find("#sure").textContent = guess ? `The model is ${percent(guess.probability)} sure.` : "";
  find("#all").hidden = true;
  return true;
}

/** Show a question in place of the one before. */
export function showQuestion(held, answer) {
  showSample(held);
  if (showProposal(held)) return;
  const list = find("#guesses");
  const hadFocus = list.contains(document.activeElement) && document.activeElement.matches(":focus-visible");
  list.replaceChildren(...held.guesses.map((guess) => make("li", {}, guessButton(guess, answer))));
  if (hadFocus) list.querySelector("button")?.focus();
  // With two or three classes the guesses are enough.
  find("#all").hidden = held.guesses.length >= find("#classes").children.length;
}

function guessButton(guess, answer) {
  const share = make("span", { class: "share" });
  share.style.width = `${100 * guess.probability}%`;
  return make("button", { type: "button", "data-label": guess.label, onclick: () => answer(guess.label) },
    share, ...keyAndName(guess.label, guess.class),
    make("span", { class: "percent" }, percent(guess.probability)));
}

const MISSING = "There is nothing to show of this sample, or it could not be loaded. Skip it if you cannot tell.";

function showSample({ image, content }) {
  const said = content && aboutView(content);
  find("#about-sample").replaceChildren(...(said ? [said] : []));
  const frame = find("#picture");
  frame.classList.toggle("plain", !image);
  find("#zoom").hidden = !image;
  if (image) return showPicture(image, frame);
  frame.dataset.source = "";
  frame.replaceChildren((content && sampleView(content)) ?? make("p", {}, MISSING));
}

function showPicture(image, frame) {
  const ready = () => {
    sharpen(image);
    image.draggable = false; // dragging moves it when it is zoomed
    frame.replaceChildren(image);
    resetZoom();
  };
  const missing = () => frame.replaceChildren(make("p", {}, MISSING));
  // A picture may arrive when another question is already shown.
  const current = (then) => () => frame.dataset.source === image.src && then();
  frame.dataset.source = image.src;
  image.onload = current(ready);
  image.onerror = current(missing);
  frame.classList.remove("fresh");
  void frame.offsetWidth; // so that the same animation starts again
  frame.classList.add("fresh");
  if (image.complete) return image.naturalWidth ? ready() : missing();
  frame.replaceChildren(make("p", {}, "Loading the picture …"));
}

/** Let the button of an answer light up for a moment, also when a key was pressed. */
export function flash(label) {
  const button = find(`#classes [data-label="${label}"]`);
  button?.classList.add("chosen");
  setTimeout(() => button?.classList.remove("chosen"), 220);
}

/** The text of a question for screen readers. */
export function describe(held) {
  if (held.proposed !== null) return `New question. Is this ${names[held.proposed]}?`;
  const guesses = held.guesses.map((guess) => `${guess.class} ${percent(guess.probability)}`);
  return `New question. The model guesses ${guesses.join(", ")}.`;
}
