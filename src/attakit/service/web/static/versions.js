/* The list of model versions, with what the gate said, and the way back to any of them. */

import { find, make } from "./dom.js";
import { ago, count, percent } from "./words.js";

const FEW = 6;
let all = false;

/** `roll(version)` is asked for when a person wants a version back; without it there are no buttons. */
export function showVersions(versions, roll) {
  const place = find("#versions");
  if (versions.length === 0) {
    place.replaceChildren(make("p", { class: "empty" }, make("b", {}, "No version yet"), "The source model appears here as soon as it serves."));
    return;
  }
  const newest = [...versions].sort((a, b) => b.version - a.version);
  const shown = all ? newest : newest.filter((version, place) => place < FEW || version.current);
  const focused = document.activeElement.closest("[data-version]")?.dataset.version;
  place.replaceChildren(make("ul", { class: "versions" }, ...shown.map((version) => row(version, roll))));
  if (focused) place.querySelector(`[data-version="${focused}"] button`)?.focus();
  if (versions.length === 1) place.append(make("p", { class: "empty" }, make("b", {}, "No learned version yet"), "After the first labels, a candidate appears here with the reason why it serves or not."));
  if (shown.length < newest.length) place.append(moreButton(newest.length, versions, roll));
}

function moreButton(number, versions, roll) {
  const show = () => {
    all = true;
    showVersions(versions, roll);
  };
  return make("button", { class: "quiet more", type: "button", onclick: show }, `Show all ${number}`);
}

function row(version, roll) {
  const [kind, name] = state(version);
  const back = roll && !version.current;
  return make("li", { "data-version": version.version },
    make("span", { class: "number" }, `v${version.version}`),
    make("span", {}, make("span", { class: `pill ${kind}` }, name)),
    make("div", { class: "why" }, reason(version), make("small", {}, details(version))),
    back ? make("button", { type: "button", onclick: () => roll(version) }, offer(version)) : make("span", {}));
}

function offer(version) {
  if (version.promoted) return "Roll back to this";
  return version.gate && !version.gate.passed ? "Use anyway" : "Use this";
}

function state(version) {
  if (version.current) return ["serves", "serves now"];
  if (version.gate && !version.gate.passed) return ["held", "held back"];
  if (version.gate) return ["passed", version.promoted ? "served before" : "passed"];
  return ["", version.version === 0 ? "source" : "not checked yet"];
}

function reason(version) {
  if (version.gate) return version.gate.reason;
  return version.version === 0 ? "The model as it was given, before any learning." : "The gate has not looked at it yet.";
}

function details(version) {
  const numbers = Object.entries(version.gate?.numbers ?? {}).filter(([, value]) => Number.isFinite(value)).map(([name, value]) => `${name.replaceAll("_", " ")} ${tell(name, value)}`);
  return [ago(version.at), count(version.labels, "label"), ...numbers].join(" · ");
}

const SHARES = /accuracy|agreement|trust|margin|low|high|bound|share|difference/;
const tell = (name, value) => (SHARES.test(name) ? percent(value, 1) : String(Number(value.toPrecision(4))));
