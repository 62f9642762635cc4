/* Line charts, drawn as SVG. */

import { draw, make } from "./dom.js";
import { clock, short } from "./words.js";

const EDGE = { left: 44, right: 10, top: 12, bottom: 22 };
const LINES = 3; // of the grid

/** Steps that people like: 1, 2 or 5 times a power of ten. */
function niceStep(span, parts) {
  const rough = span / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
}

function range(values, limits) {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (high - low < 1e-9) [low, high] = [low - Math.max(Math.abs(low) / 4, 0.05), high + Math.max(Math.abs(high) / 4, 0.05)];
  const step = niceStep(high - low, LINES);
  const bounds = [Math.floor(low / step) * step, Math.ceil(high / step - 1e-9) * step];
  return { low: Math.max(bounds[0], limits[0]), high: Math.min(bounds[1], limits[1]), step };
}

export class Chart {
  #name; #format; #limits; #waiting; #plot; #newest; #tip; #points = []; #alarms = [];

  /** `format` writes a value; `limits` are the least and the greatest value that can be;
   * `waiting` is said before there are two points. */
  constructor(parent, { name, about, format = short, limits = [-Infinity, Infinity], waiting }) {
    this.#name = name;
    this.#format = format;
    this.#limits = limits;
    this.#waiting = waiting ?? "Drawn after two turns of the learner.";
    this.#newest = make("span", {});
    this.#plot = make("div", { class: "plot" });
    this.#tip = make("div", { class: "tip", hidden: true });
    parent.append(make("div", { class: "chart" }, make("h3", { title: about }, name, this.#newest), this.#plot));
    this.#plot.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    this.#plot.addEventListener("pointerleave", () => this.#unpoint());
    new ResizeObserver(() => this.#redraw()).observe(this.#plot);
  }

  /** `points` have turn, at and value; `alarms` have at and text. */
  show(points, alarms) {
    this.#points = points.filter((point) => Number.isFinite(point.value));
    this.#alarms = alarms;
    this.#redraw();
  }

  #redraw() {
    const points = this.#points;
    this.#newest.textContent = points.length ? this.#format(points.at(-1).value) : "";
    if (points.length < 2 || !this.#plot.clientWidth) return this.#showEmpty();
    const scale = this.#scale();
    const label = `${this.#name}: ${points.length} turns, now ${this.#format(points.at(-1).value)}`;
    const picture = draw("svg", { role: "img", "aria-label": label });
    picture.append(...this.#grid(scale), ...this.#curve(scale), ...this.#alarmLines(scale));
    this.#plot.replaceChildren(picture, this.#tip);
  }

  #showEmpty() {
    this.#plot.replaceChildren(make("p", { class: "empty" }, this.#waiting));
  }

  #scale() {
    const [width, height] = [this.#plot.clientWidth, this.#plot.clientHeight];
    const { low, high, step } = range(this.#points.map((point) => point.value), this.#limits);
    const [first, last] = [this.#points[0].turn, this.#points.at(-1).turn];
    const across = (width - EDGE.left - EDGE.right) / (last - first);
    const down = (height - EDGE.top - EDGE.bottom) / (high - low);
    const x = (turn) => EDGE.left + across * (turn - first);
    return { width, height, low, high, step, first, last, x, y: (value) => height - EDGE.bottom - down * (value - low) };
  }

  #grid({ width, height, low, high, step, first, last, y }) {
    const parts = [];
    for (let value = low; value <= high + step / 100; value += step) {
      parts.push(draw("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
      const name = this.#format(Number(value.toPrecision(6)));
      parts.push(draw("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, name));
    }
    parts.push(draw("text", { x: EDGE.left, y: height - 4 }, `turn ${first}`));
    parts.push(draw("text", { x: width - EDGE.right, y: height - 4, "text-anchor": "end" }, `turn ${last}`));
    return parts;
  }

  #curve({ x, y, low }) {
    const places = this.#points.map((point) => `${x(point.turn).toFixed(1)} ${y(point.value).toFixed(1)}`);
    const line = `M${places.join("L")}`;
    const end = this.#points.at(-1);
    const floor = y(low).toFixed(1);
    return [
      draw("path", { class: "under", d: `${line}L${x(end.turn).toFixed(1)} ${floor}L${x(this.#points[0].turn)} ${floor}Z` }),
      draw("path", { class: "curve", d: line }),
      draw("circle", { class: "point", cx: x(end.turn), cy: y(end.value), r: 4.5 }),
    ];
  }

  /** Alarms are told by time; they stand where the turn of that time stands. */
  #alarmLines({ x, height }) {
    return this.#alarms.filter((alarm) => alarm.at >= this.#points[0].at).flatMap((alarm) => {
      const turn = (this.#points.findLast((point) => point.at <= alarm.at) ?? this.#points[0]).turn;
      const place = { x1: x(turn), x2: x(turn), y1: EDGE.top - 4, y2: height - EDGE.bottom };
      return [
        draw("line", { class: "alarm", ...place }, draw("title", {}, alarm.text)),
        draw("circle", { class: "alarm-mark", cx: x(turn), cy: EDGE.top - 6, r: 4 }, draw("title", {}, alarm.text)),
      ];
    });
  }

  #point(offset) {
    if (this.#points.length < 2) return;
    const { x, y, height, width } = this.#scale();
    const distance = (point) => Math.abs(x(point.turn) - offset);
    const near = this.#points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
    this.#unpoint();
    this.#plot.querySelector("svg").append(
      draw("line", { class: "cross", x1: x(near.turn), x2: x(near.turn), y1: EDGE.top, y2: height - EDGE.bottom }),
      draw("circle", { class: "point cross-point", cx: x(near.turn), cy: y(near.value), r: 4.5 }));
    this.#tip.textContent = `${this.#format(near.value)} · turn ${near.turn} · ${clock(near.at)}`;
    this.#tip.hidden = false;
    const room = width - this.#tip.offsetWidth;
    this.#tip.style.left = `${Math.max(0, Math.min(room, x(near.turn) - this.#tip.offsetWidth / 2))}px`;
  }

  #unpoint() {
    this.#tip.hidden = true;
    this.#plot.querySelectorAll(".cross, .cross-point").forEach((part) => part.remove());
  }
}
