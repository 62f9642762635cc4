/* Two versions side by side. */

import { find, make } from "./dom.js";
import { count, moment, percent } from "./words.js";

const NAMES = {
  candidate_accuracy: "right on its audit",
  serving_accuracy: "the serving version then",
  source_accuracy: "the source model then",
  audit_answers: "audit answers",
};
let versions = [];

export function showComparison(all) {
  versions = [...all].sort((a, b) => b.version - a.version);
  find("#compare").hidden = versions.length < 2;
  if (versions.length < 2) return;
  const current = versions.find((one) => one.current) ?? versions[0];
  fill("#compare-one", current.version);
  fill("#compare-other", versions.find((one) => one !== current && one.promoted)?.version ?? versions.find((one) => one !== current).version);
  draw();
}

/** Offer all versions, and keep the user's choice. */
function fill(selector, usual) {
  const select = find(selector);
  const chosen = select.value || String(usual);
  select.replaceChildren(...versions.map(({ version, current }) => make("option", { value: version, selected: String(version) === chosen }, `v${version}${current ? " (serves)" : ""}`)));
  select.onchange = draw;
}

function draw() {
  const [one, other] = ["#compare-one", "#compare-other"].map((selector) => versions.find(({ version }) => String(version) === find(selector).value));
  if (!one || !other) return;
  const row = (name, value) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value(one)), make("td", {}, value(other)));
  const numbers = Object.entries(NAMES)
    .filter(([name]) => [one, other].some((version) => Number.isFinite(version.gate?.numbers[name])))
    .map(([name, text]) => row(text, (version) => measured(version.gate?.numbers ?? {}, name)));
  const rows = [row("made", (version) => moment(version.at)), row("labels", (version) => count(version.labels, "label")), ...numbers,
    row("gate", (version) => (version.gate ? (version.gate.passed ? "passed" : "held back") : "–")),
    row("reason", (version) => version.gate?.reason ?? "–")];
  const head = make("tr", {}, make("td", {}), ...[one, other].map(({ version }) => make("th", { scope: "col" }, `v${version}`)));
  find("#comparison").replaceChildren(make("div", { class: "scroll", tabindex: 0 }, make("table", { class: "comparison" }, make("thead", {}, head), make("tbody", {}, ...rows))));
}

function measured(numbers, name) {
  const value = numbers[name];
  if (!Number.isFinite(value)) return "–";
  if (!name.endsWith("_accuracy")) return String(value);
  const [low, high] = [numbers[`${name}_low`], numbers[`${name}_high`]];
  return `${percent(value, 1)}${Number.isFinite(low) ? ` (${percent(low)} to ${percent(high)})` : ""}`;
}
