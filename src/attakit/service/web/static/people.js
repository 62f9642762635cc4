/* Who answers and how often they agree with others; and what happened. */

import { find, make, prose, write } from "./dom.js";
import { ago, count, percent, whole } from "./words.js";

const FEW = 6;
const KINDS = { promotion: "serves", gate: "gate", alarm: "alarm", change: "change", paused: "paused", resumed: "resumed", forgotten: "forgotten", token: "token", "token revoked": "token", "learner died": "learner" };
const unfolded = { people: false, events: false };

const share = (part, all) => (all ? percent(part / all) : "–");
const plain = (who) => who.replace(/^local:/, "");

export function showPeople({ people, annotators, ...rest }) {
  write(find("#people-note"), people.length ? count(people.length, people.length === 1 ? "person" : "people").replace("peoples", "people") : "");
  if (!people.length) {
    find("#people").replaceChildren(make("p", { class: "empty" }, make("b", {}, "No answers yet"), "The number of answers per person appears here."));
    return;
  }
  const estimated = annotators.length > 0; // by the learner, if several people answer each question
  const right = new Map(annotators.map(({ name, accuracy }) => [name, percent(accuracy)]));
  const columns = ["", "answers", "skipped", "with others", "with the model", ...(estimated ? ["right"] : [])];
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col" }, text)));
  const shown = unfolded.people ? people : people.slice(0, FEW);
  const rows = shown.map((one) => make("tr", { title: `last ${ago(one.last)}` }, make("th", { scope: "row" }, make("bdi", {}, plain(one.who))),
    make("td", {}, whole(one.answers)), make("td", {}, share(one.skipped, one.answers)),
    make("td", {}, share(one.agreed, one.compared)), make("td", {}, share(one.model_agreed, one.audited)), estimated ? make("td", {}, right.get(one.who) ?? "–") : null));
  const note = make("p", { class: "soft" }, `Agreement with others: where two or more people answered the same question. With the model: on audit samples.${estimated ? " Right: an estimate of how often they are, from answers of several people." : ""}`);
  find("#people").replaceChildren(make("div", { class: "scroll", tabindex: 0 }, make("table", { class: "people" }, make("thead", {}, head), make("tbody", {}, ...rows))), note,
    ...more("people", people.length, shown.length, () => showPeople({ people, annotators, ...rest })));
}

export function showEvents({ events, ...rest }) {
  write(find("#events-note"), events.length ? ago(events[0].at) : "");
  if (!events.length) {
    find("#events").replaceChildren(make("p", { class: "empty" }, make("b", {}, "Nothing has happened yet"), "Promotions, verdicts, alarms and pauses appear here."));
    return;
  }
  const shown = unfolded.events ? events : events.slice(0, FEW);
  const rows = shown.map((one) => make("li", {}, make("span", { class: `pill ${one.kind === "alarm" ? "held" : one.kind === "promotion" ? "passed" : ""}` }, KINDS[one.kind] ?? one.kind),
    make("span", { class: "event-text" }, ...prose(one.text)), make("small", {}, `${plain(one.who)}, ${ago(one.at)}`)));
  find("#events").replaceChildren(make("ul", { class: "events" }, ...rows), ...more("events", events.length, shown.length, () => showEvents({ events, ...rest })));
}

function more(part, all, shown, show) {
  const open = () => {
    unfolded[part] = true;
    show();
  };
  return shown < all ? [make("button", { class: "quiet more", type: "button", onclick: open }, `Show all ${all}`)] : [];
}
