/* A chart of the dashboard: curves over time, a legend with their newest values, and the alarms. */

import { LineChart, swatch } from "./charts.js";
import { make } from "./dom.js";
import { clock, short, timeTicks, timeText } from "./words.js";

export class TimeChart {
  #settings; #empty; #chart;
  #legend = make("span", { class: "curves" });
  #host = make("div", { class: "host" });

  /** `curves` have name, tone and `value`, which reads a point; the first one is the main curve. `format` writes
   * a value, `limits` are the least and the greatest possible value, `zero` puts 0 on the axis, and `waiting` is shown as long as there
   * are fewer than two points. */
  constructor(parent, { name, about, curves, format = short, limits = [0, Infinity], zero = false, waiting = "Drawn after two turns of the learner." }) {
    this.#settings = { name, curves, format, limits, zero };
    this.#empty = make("p", { class: "empty" }, waiting);
    parent.append(make("div", { class: "chart" }, make("h3", { title: about }, name, this.#legend), this.#empty, this.#host));
    this.#chart = new LineChart(this.#host);
  }

  /** `points` have `at`; `alarms` have at, text and rose; `span` is the first and the last time of all charts. */
  show(points, alarms, span) {
    const { name, format, limits, zero } = this.#settings;
    const curves = this.#settings.curves.map((curve) => drawn(curve, points)).filter(({ x }) => x.length);
    const some = curves.some(({ x }) => x.length > 1);
    this.#legend.replaceChildren(...curves.map((curve) => key(curve, format, this.#settings.curves.length)));
    this.#empty.hidden = some;
    this.#host.hidden = !some;
    if (!some) return;
    const [start, end] = span;
    this.#chart.show({
      label: `${name}: ${curves.map((curve) => `${curve.name} ${format(curve.y.at(-1))}`).join(", ")}`,
      curves: curves.filter(({ x }) => x.length > 1).reverse(), // the main one on top
      alarms: alarms.filter(({ at }) => at >= start).map(({ at, text, rose }) => ({ text, x: Math.min(at, end), kind: rose ? "alarm" : "alarm change" })),
      start, end, limits, zero,
      live: true,
      xTicks: timeTicks,
      xText: (at) => timeText(at, end - start),
      yText: format,
      heading: (at) => heading(points.find((point) => point.at === at), at),
    });
  }
}

function drawn({ name, tone, value }, points) {
  const known = points.filter((point) => Number.isFinite(value(point) ?? NaN));
  return { name, tone, x: known.map(({ at }) => at), y: known.map(value) };
}

const heading = (point, at) => (point?.turn === undefined ? clock(at) : `turn ${point.turn} · ${clock(at)}`);

/** A single curve needs no name: it has that of the chart. */
function key({ name, tone, y }, format, all) {
  return make("span", {}, swatch(tone), all > 1 ? `${name} ` : null, make("b", {}, format(y.at(-1))));
}
