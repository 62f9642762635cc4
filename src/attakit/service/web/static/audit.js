/* Audit results by class, and the confusion matrix. */

import { find, make, write } from "./dom.js";
import { count, percent } from "./words.js";

const MOST_CELLS = 14; // most classes that fit in a matrix
const MOST_PAIRS = 8;
const MOST_CLASSES = 20;
const TONES = ["accent", "c7"];

export function showAudit({ count: number, classes, cells, source_known: known }) {
  write(find("#audit-note"), number ? count(number, "audited sample") : "");
  if (!number) {
    find("#audit").replaceChildren(make("p", { class: "empty" }, make("b", {}, "No audit answer yet"), "After some randomly drawn questions are answered, this shows which classes are served well."));
    return;
  }
  find("#audit").replaceChildren(make("div", { class: "halves" }, byClass(classes, known), confusions(classes, cells)));
}

const byClass = (classes, known) =>
  classTable(classes.map((one) => ({ ...one, one: one.right, other: known ? one.source_right : null })), ["served", "source"]);

/** How often two models are right about each class: `one` and `other` of `count` samples; null if not known. */
export function classTable(classes, names) {
  const some = classes.filter((one) => one.count).sort((a, b) => b.count - a.count || a.label - b.label);
  const shown = some.slice(0, MOST_CLASSES).sort((a, b) => a.label - b.label);
  const head = ["Class", "", legend(TONES[0], names[0]), legend(TONES[1], names[1]), "samples"];
  const rest = some.length > shown.length ? make("p", { class: "soft" }, `${some.length - shown.length} more classes with fewer samples`) : null;
  return make("div", { class: "scroll", tabindex: 0 }, make("table", { class: "by-class" },
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...shown.map(classRow))), rest);
}

function classRow({ class: name, count: all, one, other }) {
  const shares = [one, other].map((right) => (right === null ? null : right / all));
  return make("tr", {},
    make("th", { scope: "row" }, make("bdi", {}, name)),
    make("td", { class: "bars" }, ...shares.map((share, place) => (share === null ? null : bar(TONES[place], share)))),
    ...shares.map((share) => make("td", {}, share === null ? "–" : percent(share))),
    make("td", { class: "soft" }, String(all)));
}

export const legend = (tone, text) => make("span", {}, make("i", { class: `swatch ${tone}` }), text);

function bar(tone, share) {
  const one = make("span", { class: `bar ${tone}` });
  one.style.width = `${100 * share}%`;
  return one;
}

function confusions(classes, cells) {
  const small = classes.length <= MOST_CELLS;
  return make("div", {}, make("h3", {}, small ? "What people say (rows) and what was served (columns)" : "Most frequent mistakes"), small ? matrix(classes, cells) : pairs(classes, cells));
}

/** Each cell is darker the larger its share of its row: right ones in one colour, mistakes in another. */
function matrix(classes, cells) {
  const rows = [...classes.map(({ class: name, label }) => [name, label]), ...(cells.some(({ label }) => label === null) ? [["none", null]] : [])];
  const at = (label, guess) => cells.find((cell) => cell.label === label && cell.guess === guess)?.count ?? 0;
  const body = rows.map(([name, label]) => {
    const counts = classes.map(({ label: guess }) => at(label, guess));
    const total = counts.reduce((sum, one) => sum + one, 0);
    return make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, name)), ...counts.map((one, guess) => cell(one, total, guess === label)));
  });
  const head = make("tr", {}, make("td", {}), ...classes.map(({ class: name }) => make("th", { scope: "col", title: name }, make("bdi", {}, name))));
  const key = make("ul", { class: "legend" }, make("li", {}, make("i", { class: "swatch agree" }), "right"), make("li", {}, make("i", { class: "swatch differ" }), "wrong; darker: a larger share of its row"));
  return make("div", { class: "scroll", tabindex: 0 }, make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...body)), key);
}

function cell(number, total, right) {
  const one = make("td", { class: number ? (right ? "right" : "wrong") : "" }, number ? String(number) : "");
  if (number) one.style.setProperty("--share", `${Math.round(15 + (65 * number) / total)}%`);
  return one;
}

function pairs(classes, cells) {
  const name = (label) => (label === null ? "none of these" : classes[label]?.class ?? String(label));
  const wrong = cells.filter((one) => one.label !== one.guess).sort((a, b) => b.count - a.count).slice(0, MOST_PAIRS);
  if (!wrong.length) return make("p", { class: "soft" }, "None so far.");
  const rows = wrong.map((one) => make("tr", {}, make("td", {}, make("bdi", {}, name(one.label))), make("td", { class: "soft" }, "served as"), make("td", {}, make("bdi", {}, name(one.guess))), make("td", {}, `${one.count} ×`)));
  return make("table", { class: "pairs" }, make("tbody", {}, ...rows));
}
