/* Two versions side by side, measured on the same audit samples. */

import { get } from "./api.js";
import { classTable, legend } from "./audit.js";
import { find, make } from "./dom.js";
import { count, moment, percent, points } from "./words.js";

let versions = [];

/** Offer the versions whose weights are stored. The comparison itself is made when a person asks for it. */
export function showComparison(all) {
  versions = all.filter(({ kept }) => kept).sort((a, b) => b.version - a.version);
  find("#compare").hidden = versions.length < 2;
  if (versions.length < 2) return;
  const current = versions.find((one) => one.current) ?? versions[0];
  const before = versions.find((one) => one !== current && one.promoted) ?? versions.find((one) => one !== current);
  fill("#compare-one", current.version);
  fill("#compare-other", before.version);
  find("#compare-now").onclick = compare;
}

/** Keep the user's choice. */
function fill(selector, usual) {
  const select = find(selector);
  const chosen = select.value || String(usual);
  select.replaceChildren(...versions.map((one) => make("option", { value: one.version, selected: String(one.version) === chosen }, title(one))));
}

const title = ({ version, current }) => `v${version}${current ? " (serves)" : version === 0 ? " (source)" : ""}`;
const chosen = (selector) => versions.find(({ version }) => String(version) === find(selector).value);

async function compare() {
  const [one, other] = [chosen("#compare-one"), chosen("#compare-other")];
  if (!one || !other) return;
  const [place, button] = [find("#comparison"), find("#compare-now")];
  place.replaceChildren(make("p", { class: "soft" }, "Both versions answer the audit samples …"));
  button.disabled = true;
  try {
    place.replaceChildren(...result(one, other, await get(`/v1/versions/${one.version}/against/${other.version}`)));
  } catch (error) {
    place.replaceChildren(make("p", { class: "error", role: "alert" }, error.message));
  }
  button.disabled = false;
}

function result(one, other, found) {
  const rows = [
    row("right on the audit", measured(found.one), measured(found.other)),
    row("only this version is right", count(found.only_one, "sample"), count(found.only_other, "sample")),
    row("labels learned from", count(one.labels, "label"), count(other.labels, "label")),
    row("made", moment(one.at), moment(other.at)),
    row("gate", verdict(one), verdict(other)),
  ];
  return [make("p", { class: "verdict" }, ...sentence(one, other, found)),
    make("div", { class: "halves" }, table([one, other], rows), classTable(found.classes, [one, other].map(({ version }) => `v${version}`)))];
}

function sentence(one, other, { difference, count: number }) {
  const range = ` (${points(difference.low)} to ${points(difference.high)})`;
  const [low, high] = [difference.low > 0, difference.high < 0];
  const said = low ? "is better than" : high ? "is worse than" : "may be as good as";
  return [make("b", {}, `v${one.version} ${said} v${other.version}: ${points(difference.value)} points`), `${range} on the same ${count(number, "audited sample")}.`];
}

const row = (title, ...values) => make("tr", {}, make("th", { scope: "row" }, title), ...values.map((value) => make("td", {}, value)));
const measured = ({ value, low, high }) => make("span", {}, percent(value, 1), make("small", {}, `${percent(low)} to ${percent(high)}`));
const verdict = ({ gate, version }) => (gate ? (gate.passed ? "passed" : "held back") : version === 0 ? "source model" : "not checked");

function table([one, other], rows) {
  const head = make("tr", {}, make("td", {}), ...[["accent", one], ["c7", other]].map(([tone, { version }]) => make("th", { scope: "col" }, legend(tone, `v${version}`))));
  return make("div", { class: "scroll", tabindex: 0 }, make("table", { class: "comparison" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}
