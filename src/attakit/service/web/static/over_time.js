/* The charts: accuracy and drift by turns of the learner, latency and errors by requests. */

import { find, onChange, write } from "./dom.js";
import { TimeChart } from "./time_chart.js";
import { milliseconds, moment, percent } from "./words.js";

const SHORTEST = 600; // seconds of requests that are shown if the turns cover less
const share = (value) => percent(value, value > 0 && value < 0.1 ? 1 : 0);
const NO_REQUESTS = "Drawn after a minute of requests.";

const one = (value) => [{ name: "now", tone: "accent", value }];
const part = (name) => ({ requests, ...counts }) => (requests ? counts[name] / requests : NaN);

const byTurn = [
  { name: "Accuracy", about: "Share of correct answers on the audit", format: share, limits: [0, 1], waiting: "Drawn after some audit questions are answered.",
    curves: [{ name: "served", tone: "accent", value: (turn) => turn.accuracy }, { name: "source model", tone: "c7", value: (turn) => turn.source_accuracy }] },
  { name: "Entropy", about: "How unsure the model is, on average", curves: one((turn) => turn.entropy) },
  { name: "Change of the predicted mix", about: "How far the predicted classes have moved", curves: one((turn) => turn.drift?.mix) },
  { name: "Distance of features", about: "How far the features have moved", curves: one((turn) => turn.drift?.distance) },
];
const byRequest = [
  { name: "Latency", about: "Time to answer a prediction request", format: milliseconds, zero: true, waiting: NO_REQUESTS,
    curves: [{ name: "median", tone: "accent", value: (point) => point.median }, { name: "95 % within", tone: "c1", value: (point) => point.slowest }] },
  { name: "Error rate", about: "Share of prediction requests that failed or were refused", format: share, limits: [0, 1], zero: true, waiting: NO_REQUESTS,
    curves: [{ name: "errors", tone: "c1", value: part("failed") }, { name: "refused", tone: "c4", value: part("refused") }] },
];

const make = (options) => new TimeChart(find("#charts"), options);
const charts = { turns: byTurn.map(make), requests: byRequest.map(make) };

/** The address of the traffic that belongs to some turns, or to the chosen range. */
export function trafficAddress(range, turns, now) {
  const seconds = range ? Number(range) : Math.max(SHORTEST, turns.length ? now - turns[0].at : 0);
  return `/v1/traffic?points=120&seconds=${Math.ceil(seconds)}`;
}

export const showCharts = onChange(({ turns, alarms, points }) => {
  const times = [...turns, ...points].map(({ at }) => at);
  const some = turns.length > 1 || points.length > 1;
  find("#charts").hidden = find("#legend").hidden = !some;
  find("#no-charts").hidden = some;
  const span = [Math.min(...times), Math.max(...times)];
  for (const chart of charts.turns) chart.show(turns, alarms, span);
  for (const chart of charts.requests) chart.show(points, [], span);
  write(find("#span"), some ? `${moment(span[0])} to ${moment(span[1])}` : "");
});
