/* The dashboard's tiles and the budget bar. */

import { find, make, write } from "./dom.js";
import { ago, count, milliseconds, percent, points, short, whole } from "./words.js";

const LEARNING = { running: "Learning", paused: "Learning is paused", stopped: "The learner is not running" };

export function showNumbers(status) {
  showFacts(status);
  showAccuracy(status);
  showLatency(status);
  showThroughput(status);
  showServing(status);
  showQuestions(status);
  showBudget(status.labels);
}

function showFacts(status) {
  const state = make("span", { class: "state" }, make("i", { class: `dot ${status.learning}` }), LEARNING[status.learning]);
  const facts = [state, make("span", {}, count(Math.max(0, status.turn + 1), "turn"))];
  if (status.waiting) facts.push(make("span", {}, `${count(status.waiting, "sample")} not looked at yet`));
  find("#facts").replaceChildren(...facts);
}

const between = (one) => (one ? `${percent(one.low)} to ${percent(one.high)}` : "");

/** Accuracy of served predictions and of the source model on the same audit, and their difference. */
function showAccuracy({ accuracy }) {
  const source = accuracy?.source;
  write(find("#accuracy"), accuracy ? percent(accuracy.value) : "–");
  write(find("#accuracy-range"), between(accuracy));
  write(find("#source-accuracy"), source ? percent(source.value) : "–");
  write(find("#source-range"), between(source));
  write(find("#gain"), source ? points(accuracy.value - source.value) : "–");
  const lost = source && accuracy.value < source.value;
  write(find("#gain-note"), source ? `points ${lost ? "lost" : "gained"} by learning` : "difference");
  write(find("#accuracy-note"), accuracy ? `on the same ${count(accuracy.count, "audited sample")}` : "known after some audit questions are answered");
}

function showLatency({ traffic }) {
  const some = Boolean(traffic?.requests);
  find("#latency").replaceChildren(...(traffic?.median ? [`${milliseconds(traffic.median)} `, make("small", {}, "median")] : ["–"]));
  const slow = traffic?.slowest ? `95 % within ${milliseconds(traffic.slowest)}, ` : "";
  const part = (number, name) => (number ? `${percent(number / traffic.requests, 1)} ${name}` : `no ${name}`);
  const failed = some ? `${part(traffic.failed, "errors")}, ${part(traffic.refused, "refusals")} in 5 minutes` : "No request in the last 5 minutes.";
  write(find("#latency-note"), slow + failed);
}

function showThroughput({ throughput, served }) {
  find("#throughput").replaceChildren(`${short(throughput)} `, make("small", {}, "samples/s"));
  write(find("#throughput-note"), served ? `${count(served, "sample")} answered in total` : "No sample has arrived yet.");
}

function showServing({ version, answering, promoted_at: since }) {
  write(find("#serving"), answering === null ? "–" : `v${answering}`);
  const source = answering === 0 ? "The source model" : "A learned model";
  const promoted = version === answering ? `${source}, promoted ${ago(since)}` : `v${version} is promoted, but does not answer yet`;
  write(find("#serving-note"), since ? promoted : source);
}

function showQuestions({ labels, agreement }) {
  find("#questions-open").replaceChildren(`${whole(labels.open)} `, make("small", {}, "open"));
  const trust = Number.isFinite(agreement) ? `. Where the source model is sure, people agree in ${percent(agreement)} of cases.` : "";
  const outside = labels.none ? ` (${whole(labels.none)} of no class)` : "";
  write(find("#questions-note"), labels.asked ? `${whole(labels.answered)} of ${whole(labels.asked)} answered${outside}${trust}` : "None was asked yet.");
  write(find("#to-label"), labels.open ? `(${whole(labels.open)})` : "");
  document.querySelectorAll("[data-open-count]").forEach((badge) => {
    badge.hidden = !labels.open;
    write(badge, labels.open > 99 ? "99+" : String(labels.open));
  });
}

function showBudget(labels) {
  const back = labels.skipped + labels.expired;
  const parts = [["answered", labels.answered, "answered"], ["waiting", labels.open, "open"]];
  if (Number.isFinite(labels.left)) parts.push(["left", labels.left, "left"]);
  if (back) parts.push(["refunded", back, "skipped or expired, given back"]);
  write(find("#budget-note"), budgetText(labels));
  const shown = parts.filter(([name]) => name !== "refunded");
  find("#budget").replaceChildren(...shown.map(([name, number]) => segment(name, number)));
  find("#budget").setAttribute("aria-label", parts.map(([, number, text]) => `${number} ${text}`).join(", "));
  find("#budget-key").replaceChildren(
    ...parts.map(([name, number, text]) => make("li", { class: name }, make("b", {}, short(number)), ` ${text}`)));
}

function segment(name, number) {
  const part = make("span", { class: name });
  part.style.flexGrow = number;
  return part;
}

function budgetText({ budget, left, asked }) {
  if (!Number.isFinite(budget)) return "There is no limit on the number of labels.";
  if (left === 0) return `All ${whole(budget)} labels are spent.`;
  if (!asked) return `Up to ${count(budget, "label")} may be asked for. The first questions come when the learner has looked at enough samples.`;
  return `${short(left)} of ${count(budget, "label")} left.`;
}
