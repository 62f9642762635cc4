/* The list of model versions, with the gate's reason, and buttons to roll back. */

import { find, make, prose, write } from "./dom.js";
import { ago, count, percent } from "./words.js";

const FEW = 6;
let all = false;
const unfolded = new Set();

/** `roll(version)` is called to roll back; without it there are no buttons. An `admin` may download. */
export function showVersions(versions, roll, admin) {
  const place = find("#versions");
  if (versions.length === 0) {
    place.replaceChildren(make("p", { class: "empty" }, make("b", {}, "No version yet"), "The source model appears here as soon as it serves."));
    return;
  }
  const newest = [...versions].sort((a, b) => b.version - a.version);
  write(find("#versions-note"), newest.find(({ current }) => current) ? `v${newest.find(({ current }) => current).version} serves` : "");
  const shown = all ? newest : newest.filter((version, place) => place < FEW || version.current);
  const { tagName } = document.activeElement;
  const focused = document.activeElement.closest("[data-version]")?.dataset.version;
  place.replaceChildren(make("ul", { class: "versions" }, ...shown.map((version) => row(version, roll, admin))));
  if (focused) place.querySelector(`[data-version="${focused}"] ${tagName}`)?.focus();
  if (versions.length === 1) place.append(make("p", { class: "empty" }, make("b", {}, "No learned version yet"), "After the first labels, a candidate appears here with the reason why it serves or not."));
  if (shown.length < newest.length) place.append(moreButton(newest.length, versions, roll, admin));
}

function moreButton(number, versions, roll, admin) {
  const show = () => {
    all = true;
    showVersions(versions, roll, admin);
  };
  return make("button", { class: "quiet more", type: "button", onclick: show }, `Show all ${number}`);
}

function row(version, roll, admin) {
  const [kind, name] = state(version);
  const back = roll && !version.current && version.kept;
  return make("li", { "data-version": version.version },
    make("span", { class: "number" }, `v${version.version}`),
    make("span", {}, make("span", { class: `pill ${kind}` }, name)),
    make("div", { class: "why" }, reason(version), make("small", {}, details(version))),
    make("div", { class: "version-actions" },
      back ? make("button", { type: "button", onclick: () => roll(version) }, offer(version)) : null,
      admin && version.kept ? make("a", { class: "quiet-link", href: `/v1/versions/${version.version}/weights`, download: "" }, "Download") : null));
}

function offer(version) {
  if (version.promoted) return "Roll back";
  return version.gate && !version.gate.passed ? "Use anyway" : "Use this";
}

function state(version) {
  if (version.current) return ["serves", "serves now"];
  if (version.gate && !version.gate.passed) return ["held", "held back"];
  if (version.gate) return ["passed", version.promoted ? "served before" : "passed"];
  return ["", version.version === 0 ? "source" : "not checked yet"];
}

function reason(version) {
  const proven = version.gate?.reason.replace(/^(Passed|Held back): /, "").replace(/\.$/, "").split("; ") ?? [];
  if (proven.length > 2) return checks(version, proven);
  if (version.gate) return make("span", {}, ...prose(version.gate.reason));
  return version.version === 0 ? "The original model, before any learning." : "The gate has not checked it yet.";
}

/** The gate's checks of a version, collapsed; expanded ones stay expanded. */
function checks(version, proven) {
  const lines = proven.map((text) => make("li", {}, ...prose(text[0].toUpperCase() + text.slice(1))));
  const toggle = (event) => (event.target.open ? unfolded.add(version.version) : unfolded.delete(version.version));
  return make("details", { open: unfolded.has(version.version), ontoggle: toggle },
    make("summary", {}, `Passed all ${proven.length} checks`), make("ul", {}, ...lines));
}

function interval(numbers, name) {
  const [low, high] = [numbers[`${name}_low`], numbers[`${name}_high`]];
  return Number.isFinite(low) && Number.isFinite(high) ? ` (${percent(low)} to ${percent(high)})` : "";
}

function details(version) {
  const right = Object.entries(version.gate?.numbers ?? {})
    .filter(([name, value]) => name.endsWith("_accuracy") && Number.isFinite(value))
    .map(([name, value]) => `${name.replace("_accuracy", "")} ${percent(value, 1)}${interval(version.gate.numbers, name)}`);
  const audit = right.length ? [`right on the audit: ${right.join(", ")}`] : [];
  const gone = version.kept ? [] : ["weights no longer stored"];
  return [ago(version.at), count(version.labels, "label"), ...audit, ...gone].join(" · ");
}
