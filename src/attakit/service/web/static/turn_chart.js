/* A chart of the dashboard: one value per turn of the learner, its newest value, and the alarms. */

import { LineChart } from "./charts.js";
import { make, write } from "./dom.js";
import { clock, short } from "./words.js";

function curve(name, tone, points, key) {
  const known = points.filter((point) => Number.isFinite(point[key]));
  return known.length > 1 ? [{ name, tone, x: known.map((point) => point.turn), y: known.map((point) => point[key]) }] : [];
}

export class TurnChart {
  #settings; #empty; #chart;
  #newest = make("span");
  #host = make("div", { class: "host" });

  /** `format` writes a value, `limits` are the least and the greatest possible value, and `waiting` is shown
   * as long as there are fewer than two points. */
  constructor(parent, { name, about, served, format = short, limits, waiting = "Drawn after two turns of the learner." }) {
    this.#settings = { name, served, format, limits };
    this.#empty = make("p", { class: "empty" }, waiting);
    parent.append(make("div", { class: "chart" }, make("h3", { title: about }, name, this.#newest), this.#empty, this.#host));
    this.#chart = new LineChart(this.#host);
  }

  /** `turns` have turn, at, value and maybe source, the source model's value; `alarms` have at, text and rose. */
  show(turns, alarms) {
    const { name, format, limits } = this.#settings;
    const points = turns.filter((point) => Number.isFinite(point.value));
    const newest = points.length ? format(points.at(-1).value) : "";
    write(this.#newest, newest);
    this.#empty.hidden = points.length > 1;
    this.#host.hidden = points.length < 2;
    if (points.length < 2) return;
    const times = new Map(points.map((point) => [point.turn, point.at]));
    this.#chart.show({
      label: `${name}: ${points.length} turns, now ${newest}`,
      curves: [...curve("source model", "c7", points, "source"), ...curve(this.#settings.served ?? name, "accent", points, "value")],
      alarms: alarms.filter((alarm) => alarm.at >= points[0].at)
        .map((alarm) => ({ text: alarm.text, x: points.findLast((point) => point.at <= alarm.at).turn, kind: alarm.rose ? "alarm" : "alarm change" })),
      start: points[0].turn,
      limits,
      live: true,
      xText: (turn, isLast) => (isLast ? `turn ${turn}` : String(turn)),
      yText: format,
      heading: (turn) => `turn ${turn} · ${clock(times.get(turn))}`,
    });
  }
}
