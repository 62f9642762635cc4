/* Shows a sample that is not a picture as a table, a small plot or a text, with its sender's notes. */

import { LineChart, swatch } from "./charts.js";
import { make } from "./dom.js";
import { short } from "./words.js";

/** A number with all digits that the server sends, and a real minus sign. */
const number = (value) => String(value).replace("-", "\u2212");

const MOST_ROWS = 40; // of a table of names and values
const MOST_COLUMNS = 12;
const MOST_CELLS = 400;
const MOST_CURVES = 8;

/** The sample itself; null if there is nothing to show of it. */
export function sampleView({ kind, text, columns, values }) {
  if (kind === "text") return text ? make("blockquote", { class: "sample-text", tabindex: 0 }, text) : null;
  if (!values?.length) return null;
  const names = columns.length ? columns : values[0].map((_, place) => String(place + 1));
  if (values.length === 1 && names.length <= MOST_ROWS) return listing(names, values[0]);
  if (names.length <= MOST_COLUMNS && values.length * names.length <= MOST_CELLS) return table(names, values);
  return plot(names, values);
}

/** The caller's id, text and notes; null if there are none. */
export function aboutView({ kind, id, text, notes }) {
  const entries = Object.entries(notes);
  if (id) entries.unshift(["id", id]);
  const told = kind === "text" ? null : text;
  if (!told && !entries.length) return null;
  return make("div", { class: "about-sample" },
    told ? make("p", {}, told) : null,
    entries.length ? make("dl", {}, ...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])) : null);
}

/** Names and values, one below the other. */
function listing(names, values) {
  const rows = names.map((name, place) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, number(values[place]))));
  return framed(make("table", { class: "numbers" }, make("tbody", {}, ...rows)));
}

function table(names, values) {
  const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
  const rows = values.map((row) => make("tr", {}, ...row.map((value) => make("td", {}, number(value)))));
  return framed(make("table", { class: "numbers wide" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}

const framed = (content) => make("div", { class: "numbers-frame", tabindex: 0 }, content);

/** Curves: a row is one if there are few, else a column, so that time goes to the right. */
function plot(names, values) {
  const byRow = values.length <= MOST_CURVES;
  const lines = byRow ? values : names.slice(0, MOST_CURVES).map((_, column) => values.map((row) => row[column]));
  const host = make("div", { class: "sample-plot" });
  const chart = new LineChart(host);
  const places = lines[0].map((_, place) => place + 1);
  const curves = lines.map((y, place) => ({ name: byRow ? `row ${place + 1}` : names[place], tone: lines.length > 1 ? `c${place}` : "accent", x: places, y }));
  chart.show({
    label: `${lines.length} curves of ${places.length} numbers`,
    curves,
    start: 1,
    xText: (place) => (byRow ? names[place - 1] ?? String(place) : String(place)),
    yText: short,
    heading: (place) => (byRow ? names[place - 1] ?? String(place) : `row ${place}`),
  });
  if (curves.length === 1) return host;
  const key = curves.map(({ name, tone }) => make("li", {}, swatch(tone), name));
  return make("div", { class: "sample-plots" }, host, make("ul", { class: "curves" }, ...key));
}
