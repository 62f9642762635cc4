/* Line charts drawn as SVG, for the report, the analysis page and the dashboard. All colours come from CSS. */

import { draw, make } from "./dom.js";

const END_LABEL_GAP = 16;
const tip = make("div", { id: "tip", role: "status", hidden: true });
document.body.append(tip);

/** Show a box of details next to a point of the window. */
export function showTip(x, y, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, innerHeight - box.height - 4))}px`;
}

export function hideTip() {
  tip.hidden = true;
}

export const swatch = (tone) => make("span", { class: `swatch ${tone}`, "aria-hidden": "true" });

/** Multiples of 1, 2 or 5 times a power of ten that enclose a range. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}

function valueTicks(values, [least, greatest], wanted) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const margin = high - low < 1e-9 ? Math.max(Math.abs(low) / 4, 0.05) : 0; // a flat line needs room around it
  return ticks(low - margin, high + margin, wanted).filter((value) => value >= least && value <= greatest);
}

const wholeTicks = (start, end, wanted) => ticks(start, end, wanted).filter((x) => x >= start && x <= end && Number.isInteger(x));

function makeScale({ curves, bands, start, end: last, xTicks, limits, zero, endLabels }, width, height) {
  const named = endLabels && width > 620 && curves.length < 9;
  const [left, right, top, bottom] = [50, width - (named ? 150 : 12), bands.length ? 26 : 14, height - 26];
  const values = curves.flatMap((curve) => [...curve.y, ...(curve.low ?? []), ...(curve.high ?? [])]);
  const rows = valueTicks(zero ? [0, ...values] : values, limits, Math.min(5, Math.round((bottom - top) / 45)));
  const [low, high] = [rows[0], rows.at(-1)];
  const end = Math.max(start + 1, last, ...bands.map((band) => band[2]), ...curves.map((curve) => curve.x.at(-1)));
  const columns = xTicks(start, end, Math.max(3, Math.min(6, Math.round(width / 90))));
  const x = (value) => left + ((value - start) / (end - start)) * (right - left);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  return { width, height, left, right, top, bottom, named, rows, columns, x, y };
}

function drawBands({ bands }, { x, bottom }) {
  return bands.flatMap(([name, start, stop], n) => {
    const width = x(stop) - x(start), letters = Math.floor(width / 7.5);
    const text = name.length > letters ? `${name.slice(0, Math.max(letters - 1, 0))}…` : name;
    const place = { class: "segment", x: x(start) + width / 2, y: 17, "text-anchor": "middle" };
    const label = draw("text", place, letters > 2 ? text : "", draw("title", {}, name));
    return n % 2 ? [label] : [draw("rect", { class: "band", x: x(start), width, y: 0, height: bottom }), label];
  });
}

function drawAxes({ xText, yText }, { x, y, left, right, width, height, rows, columns }) {
  const lines = rows.map((value) => draw("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) }));
  const values = rows.map((value) => draw("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, yText(value)));
  const places = columns.map((value, n) => {
    const anchor = x(value) > width - 40 ? "end" : "middle";
    return draw("text", { x: x(value), y: height - 8, "text-anchor": anchor }, xText(value, n === columns.length - 1));
  });
  return [...lines, ...values, ...places];
}

const drawPoint = (tone, x, y) => draw("circle", { class: `point ${tone}`, r: 4, cx: x, cy: y });

function drawCurves({ curves, live }, { x, y, bottom }) {
  const path = ({ x: xs }, values) => xs.map((value, n) => `${x(value).toFixed(1)} ${y(values[n]).toFixed(1)}`);
  const area = (curve) => {
    const ends = [curve.x[0], curve.x.at(-1)].map((value) => `${x(value).toFixed(1)} ${bottom}`);
    const edges = [...path(curve, curve.high ?? curve.y), ...(curve.low ? path(curve, curve.low) : ends).reverse()];
    return draw("path", { class: `range ${curve.tone}`, d: `M${edges.join("L")}Z` });
  };
  const areas = curves.filter((curve) => curve.low || (live && curves.length === 1)).map(area);
  const lines = curves.map((curve) => draw("path", { class: `line ${curve.tone}`, d: `M${path(curve, curve.y).join("L")}` }));
  const points = curves.filter((curve) => live || curve.x.length === 1)
    .map((curve) => drawPoint(curve.tone, x(curve.x.at(-1)), y(curve.y.at(-1))));
  return [...areas, ...lines, ...points];
}

/** Names at the right ends of the curves, moved apart where they would overlap. */
function drawEndLabels({ curves }, { named, y, right, bottom }) {
  if (!named) return [];
  const labels = curves.map((curve) => ({ curve, at: y(curve.y.at(-1)) })).sort((a, b) => a.at - b.at);
  labels.forEach((label, n) => { if (n) label.at = Math.max(label.at, labels[n - 1].at + END_LABEL_GAP); });
  [...labels].reverse().forEach((label, n) => { label.at = Math.min(label.at, bottom - n * END_LABEL_GAP); });
  return labels.map(({ curve: { name, tone }, at }) =>
    draw("text", { class: `end ${tone}`, x: right + 8, y: at + 4 }, name.length > 21 ? `${name.slice(0, 20)}…` : name));
}

function drawAlarms({ alarms }, { x, top, bottom }) {
  return alarms.map((alarm) => draw("g", { class: alarm.kind ?? "alarm" }, draw("title", {}, alarm.text),
    draw("line", { x1: x(alarm.x), x2: x(alarm.x), y1: top - 4, y2: bottom }),
    draw("circle", { cx: x(alarm.x), cy: top - 6, r: 4 })));
}

const DEFAULTS = { bands: [], alarms: [], start: 0, end: -Infinity, xTicks: wholeTicks, limits: [-Infinity, Infinity], zero: false, live: false, endLabels: false };
const PARTS = [drawBands, drawAxes, drawCurves, drawEndLabels, drawAlarms];

/** A chart that fills its host element. Pointer and arrow keys read the values. */
export class LineChart {
  #host; #options; #scale; #reading = null;
  #marks = draw("g");
  #svg = draw("svg", { class: "plot", role: "img", tabindex: 0 });

  constructor(host) {
    this.#host = host;
    host.append(this.#svg);
    this.#svg.addEventListener("pointermove", (event) => this.#point(event));
    this.#svg.addEventListener("keydown", (event) => this.#press(event));
    for (const name of ["pointerleave", "blur"]) this.#svg.addEventListener(name, () => this.#stopReading());
    new ResizeObserver(() => this.#redraw()).observe(host);
  }

  /** Draw the chart.
   *
   * `label` describes it to screen readers. `curves` have name, tone (classes that set the colour), x, y and
   * maybe low and high; later ones are drawn on top. `xText`, `yText` and `heading` write an x value (and
   * whether it is the last), a y value and the heading of a reading. `bands` are [name, start, stop] along x,
   * `alarms` have x, text and maybe a kind, which is a class. `start` and `end` are the ends of the
   * x axis, `xTicks(start, end, wanted)` returns its marks, `limits` are the least and greatest possible
   * value, `zero` puts 0 on the y axis, `live` fills the area below a single curve and marks the newest points, and
   * `endLabels` writes names at the ends of curves if there is room. */
  show(options) {
    this.#options = { ...DEFAULTS, ...options };
    this.#svg.setAttribute("aria-label", `${options.label}. Arrow keys read the values.`);
    this.#redraw();
  }

  #redraw() {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (!this.#options || !width) return;
    this.#marks.replaceChildren();
    if (!this.#options.curves.length) {
      this.#stopReading();
      return this.#svg.replaceChildren();
    }
    this.#scale = makeScale(this.#options, width, height);
    this.#svg.replaceChildren(...PARTS.flatMap((part) => part(this.#options, this.#scale)), this.#marks);
    if (this.#reading) this.#read(this.#reading.place, this.#reading.at);
  }

  /** The x values of the longest curve: where values can be read. */
  get #places() {
    return this.#options.curves.reduce((longest, { x }) => (x.length > longest.length ? x : longest), []);
  }

  #point(event) {
    const offset = event.clientX - this.#svg.getBoundingClientRect().left;
    const distances = this.#places.map((value) => Math.abs(this.#scale.x(value) - offset));
    if (distances.length) this.#read(distances.indexOf(Math.min(...distances)), [event.clientX, event.clientY]);
  }

  #press(event) {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || !this.#places.length) return;
    event.preventDefault();
    this.#read((this.#reading?.place ?? this.#places.length - 1) + move);
  }

  /** Show the values at one place, in a box at a point of the window or at the chart's top. */
  #read(wanted, at) {
    const { curves, yText, heading } = this.#options;
    const { x, y, top, bottom } = this.#scale;
    const place = Math.max(0, Math.min(wanted, this.#places.length - 1));
    const here = this.#places[place];
    this.#reading = { place, at };
    const values = curves.map((curve) => ({ ...curve, value: curve.y[curve.x.indexOf(here)] }))
      .filter(({ value }) => value !== undefined).sort((a, b) => b.value - a.value);
    this.#marks.replaceChildren(
      draw("line", { class: "cross", x1: x(here), x2: x(here), y1: top, y2: bottom }),
      ...values.map(({ tone, value }) => drawPoint(tone, x(here), y(value))));
    const box = this.#svg.getBoundingClientRect();
    const rows = values.map(({ tone, name, value }) =>
      make("div", {}, swatch(tone), make("span", {}, name), make("span", {}, yText(value))));
    showTip(...(at ?? [box.left + x(here), box.top + 20]), make("b", {}, heading(here)), ...rows);
  }

  #stopReading() {
    if (!this.#reading) return;
    this.#reading = null;
    this.#marks.replaceChildren();
    hideTip();
  }
}
