/* The report and the analysis page: charts, the clusters step by step, and the gallery. */

import { hideTip, LineChart, showTip, swatch } from "./charts.js";
import { draw, make } from "./dom.js";

const colour = (index) => `c${index % 8}${index > 7 ? " again" : ""}`;
const all = (view, query) => [...view.querySelectorAll(query)];
const press = (buttons, chosen) => buttons.forEach((button) => button.setAttribute("aria-pressed", button === chosen));
const writer = (decimals) => (value) => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(decimals));

// ---- line charts -----------------------------------------------------------------------------

function showCharts(view, { curves, bands, best, decimals = 1 }) {
  const number = writer(decimals);
  const hidden = new Set();
  const charts = all(view, "[data-chart]").map((host) => ({ host, chart: new LineChart(host) }));

  function show({ host, chart }) {
    const { chart: name, unit, zero, alt } = host.dataset;
    const shown = curves[name]
      .map((curve, index) => ({ ...curve, index, tone: colour(curve.place ?? index) + (curve.name === best ? " best" : "") }))
      .filter((curve) => curve.y.length && !hidden.has(curve.index))
      .sort((a, b) => (a.name === best) - (b.name === best));
    chart.show({
      label: alt,
      curves: shown,
      bands,
      zero: Boolean(zero),
      ...(unit === " %" && { limits: [0, 100] }),
      endLabels: host.classList.contains("tall"),
      xText: (x, isLast) => number(x) + (isLast ? " samples" : ""),
      yText: (y) => number(y) + unit,
      heading: (x) => {
        const band = bands.find(([, start, stop]) => start < x && x <= stop);
        return `${number(x)} samples${band ? ` · ${band[0]}` : ""}`;
      },
    });
  }

  all(view, ".legend").forEach((legend) => curves.around.forEach((curve, index) => {
    const toggle = () => {
      if (!hidden.delete(index)) hidden.add(index);
      button.setAttribute("aria-pressed", !hidden.has(index));
      charts.forEach(show);
    };
    const button = make("button", { type: "button", "aria-pressed": "true", onclick: toggle }, swatch(colour(curve.place ?? index)), curve.name);
    legend.append(button);
  }));
  all(view, "[data-curves]").forEach((button, _, buttons) => button.addEventListener("click", () => {
    press(buttons, button);
    view.querySelector(".accuracy").dataset.chart = button.dataset.curves;
    charts.forEach(show);
  }));
  charts.forEach(show);
}

// ---- clusters, step by step ------------------------------------------------------------------

const DIAMOND = "M0-1 1 0 0 1-1 0Z";
const STAR = "M0-1.3.38-.4 1.3-.4.57.2.8 1.15 0 .6-.8 1.15-.57.2-1.3-.4-.38-.4Z";
const ROLES = ["known", "chosen", "new"];
const ROLE_NAMES = ["earlier anchor", "new anchor", "sample"];

function shape(role, picture) {
  const thin = { "vector-effect": "non-scaling-stroke" };
  if (role === 2) return draw("g", {}, draw("circle", { r: 1 }));
  if (!picture) return draw("g", {}, draw("path", { d: role ? STAR : DIAMOND, ...thin }));
  return draw("g", {},
    draw("rect", { class: "rim", x: -1.15, y: -1.15, width: 2.3, height: 2.3, rx: 0.25, ...thin }),
    draw("image", { href: picture, x: -1, y: -1, width: 2, height: 2 }));
}

function playClusters(view, scene, decimals = 1) {
  const [host, slider, play, moment, faces] = [".scene", ".slider", ".play", ".moment", ".faces"].map((query) => view.querySelector(query));
  const number = writer(decimals);
  const points = scene.frames.flatMap((frame) => frame.points);
  const pictures = new Map(all(view, "img[data-sample]").map((image) => [image.dataset.sample, image.src]));
  const words = new Map(all(view, ".words, .row").map((node) => [node.dataset.sample, node]));
  faces.checked = points.some((point) => pictures.has(scene.names[point[0]]));
  faces.parentElement.hidden = !faces.checked;
  const span = (n) => { const values = points.map((point) => point[n]); return [Math.min(...values), Math.max(...values)]; };
  const [left, right] = span(1), [low, high] = span(2);
  const heaviest = Math.max(...points.map((point) => point[3]), 1);
  const spokes = draw("g"), layer = draw("g");
  const svg = draw("svg", { class: "plot", role: "img" }, spokes, layer);
  host.append(svg);
  const marks = new Map();
  let timer = null;

  const X = (x) => 24 + ((x - left) / (right - left || 1)) * (host.clientWidth - 48);
  const Y = (y) => 24 + ((high - y) / (high - low || 1)) * (host.clientHeight - 48);
  const radius = (point) => (point[4] === 2 ? 3.2 : ((faces.checked ? (point[4] ? 14 : 9) : 4.5) + 11 * Math.sqrt(point[3] / heaviest)) * Math.min(1, 0.4 + host.clientWidth / 1400));

  function place(point) {
    const [sample, x, y, weight, role, cluster, tone] = point;
    const name = scene.names[sample], picture = pictures.get(name);
    const shown = faces.checked ? picture : undefined;
    let mark = marks.get(sample);
    if (!mark || mark.role !== role || mark.picture !== shown) {
      if (mark) mark.node.remove();
      mark = { role, picture: shown, node: shape(role, shown) };
      marks.set(sample, mark);
      layer.append(mark.node);
    }
    mark.node.setAttribute("class", `mark ${ROLES[role]} ${colour(tone)}`);
    mark.node.style.transform = `translate(${X(x).toFixed(1)}px, ${Y(y).toFixed(1)}px) scale(${radius(point).toFixed(2)})`;
    mark.node.onpointerenter = (event) => showTip(event.clientX, event.clientY, make("b", {}, name),
      make("span", {}, `${ROLE_NAMES[role]}, cluster ${cluster}, weight ${number(weight)}`),
      picture ? make("img", { src: picture, alt: "" }) : words.has(name) ? words.get(name).cloneNode(true) : "");
    mark.node.onpointerleave = hideTip;
    if (role < 2) layer.append(mark.node);
  }

  function drawSpokes(frame) {
    const clusters = new Map();
    for (const point of frame.points) clusters.set(point[5], [...(clusters.get(point[5]) || []), point]);
    spokes.replaceChildren(...[...clusters.values()].flatMap((members) => {
      const middle = [1, 2].map((n) => members.reduce((sum, point) => sum + point[n], 0) / members.length);
      const d = members.map(([, x, y]) => `M${X(middle[0])} ${Y(middle[1])}L${X(x)} ${Y(y)}`).join("");
      return ["cloud", "spoke"].map((kind) => draw("path", { class: `${kind} ${colour(members[0][6])}`, d }));
    }));
    return clusters.size;
  }

  function show(at) {
    const frame = scene.frames[at];
    const present = new Set(frame.points.map((point) => point[0]));
    for (const [sample, mark] of marks) if (!present.has(sample)) { mark.node.remove(); marks.delete(sample); }
    [...frame.points].sort((a, b) => b[4] - a[4]).forEach(place);
    const count = (role) => frame.points.filter((point) => point[4] === role).length;
    const text = `Step ${frame.step} · clusters ${drawSpokes(frame)} · earlier anchors ${count(0)} · asked ${count(1)}`;
    moment.textContent = text;
    slider.value = at;
    slider.setAttribute("aria-valuetext", text);
    svg.setAttribute("aria-label", "Clusters in the plane. " + text);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
  }

  play.addEventListener("click", () => {
    if (timer) return stop();
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
    if (+slider.value === scene.frames.length - 1) show(0);
    timer = setInterval(() => (+slider.value < scene.frames.length - 1 ? show(+slider.value + 1) : stop()), 900);
  });
  slider.addEventListener("input", () => { stop(); show(+slider.value); });
  faces.addEventListener("change", () => show(+slider.value));
  show(Math.floor(scene.frames.length / 2));
  new ResizeObserver(() => show(+slider.value)).observe(host);
}

// ---- gallery ---------------------------------------------------------------------------------

function filterGallery(view, verdict) {
  all(view, ".cards li").forEach((card) => { card.hidden = verdict !== "all" && !card.classList.contains(verdict); });
  all(view, ".gallery h3").forEach((head) => { head.hidden = !head.nextElementSibling.querySelector("li:not([hidden])"); });
}

function connectGallery(view) {
  all(view, "[data-verdict]").forEach((button, _, buttons) => button.addEventListener("click", () => {
    press(buttons, button);
    filterGallery(view, button.dataset.verdict);
  }));
  view.querySelector(".which")?.addEventListener("change", (event) => {
    all(view, ".gallery").forEach((gallery, n) => { gallery.hidden = n !== +event.target.value; });
  });
}

// ---- views: one per stream, of which one is visible --------------------------------------------

const views = all(document, ".view");
for (const view of views) {
  const data = JSON.parse(view.querySelector("script.data").textContent);
  showCharts(view, data);
  connectGallery(view);
  if (data.scene) playClusters(view, data.scene, data.decimals);
}
all(document, "[data-view]").forEach((button, chosen, buttons) => button.addEventListener("click", () => {
  press(buttons, button);
  views.forEach((view, n) => { view.hidden = n !== chosen; });
}));
