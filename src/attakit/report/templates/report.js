"use strict";
(() => {
  const tip = document.getElementById("tip");
  const colour = (index) => "c" + (index % 8) + (index > 7 ? " again" : "");
  const press = (buttons, chosen) => buttons.forEach((button) => button.setAttribute("aria-pressed", button === chosen));

  function draw(parent, name, attributes = {}, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  function element(parent, name, className, text) {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  function showTip(x, y, fill) {
    tip.replaceChildren();
    fill(tip);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, Math.min(y + 12, innerHeight - box.height - 4)) + "px";
  }
  const hideTip = () => { tip.hidden = true; };

  function ticks(low, high, wanted) {
    const rough = (high - low || 1) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
    return Array.from({ length: Math.max(last - first, 1) + 1 }, (_, n) => +((first + n) * step).toFixed(6));
  }

  function spreadLabels(labels, gap, bottom) {
    labels.sort((a, b) => a.y - b.y);
    labels.forEach((label, n) => { if (n) label.y = Math.max(label.y, labels[n - 1].y + gap); });
    let limit = bottom;
    for (const label of [...labels].reverse()) { label.y = Math.min(label.y, limit); limit = label.y - gap; }
  }

  // A view is what the page shows of one stream. Returned is what draws it anew.
  function fill(view) {
    const data = JSON.parse(view.querySelector("script.data").textContent);
    const find = (query) => view.querySelector(query);
    const all = (query) => [...view.querySelectorAll(query)];
    const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(data.decimals ?? 1));

    // ---- line charts -------------------------------------------------------------------------
    const hidden = new Set();

    function lineChart(host) {
      const curves = data.curves[host.dataset.chart].map((curve, index) => ({ ...curve, index }))
        .filter((curve) => curve.y.length && !hidden.has(curve.index));
      const width = host.clientWidth, height = host.clientHeight;
      const named = host.classList.contains("tall") && width > 620 && curves.length < 9;
      const frame = { left: 50, right: named ? 150 : 12, top: data.bands.length ? 26 : 10, bottom: 26 };
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("role", "img");
      svg.setAttribute("tabindex", "0");
      svg.setAttribute("aria-label", host.dataset.alt + ". Arrow keys read the values.");
      host.replaceChildren(svg);
      if (!curves.length) return;

      const ys = curves.flatMap((curve) => [...curve.y, ...(curve.low || []), ...(curve.high || [])]);
      const steps = ticks(host.dataset.zero ? 0 : Math.min(...ys), Math.max(...ys), 5);
      const [low, high] = [steps[0], steps.at(-1)];
      const end = Math.max(...data.bands.map((band) => band[2]), ...curves.map((curve) => curve.x.at(-1)), 1);
      const X = (x) => frame.left + (x / end) * (width - frame.left - frame.right);
      const Y = (y) => height - frame.bottom - ((y - low) / (high - low)) * (height - frame.top - frame.bottom);

      data.bands.forEach(([name, start, stop], n) => {
        if (n % 2 === 0) draw(svg, "rect", { class: "band", x: X(start), width: X(stop) - X(start), y: 0, height: height - frame.bottom });
        const room = Math.floor((X(stop) - X(start)) / 7.5);
        const short = name.length > room ? name.slice(0, Math.max(room - 1, 0)) + "…" : name;
        const text = draw(svg, "text", { class: "stretch", x: (X(start) + X(stop)) / 2, y: 17, "text-anchor": "middle" }, room > 2 ? short : "");
        draw(text, "title", {}, name);
      });
      for (const y of steps) {
        draw(svg, "line", { class: "grid", x1: frame.left, x2: width - frame.right, y1: Y(y), y2: Y(y) });
        draw(svg, "text", { x: frame.left - 8, y: Y(y) + 4, "text-anchor": "end" }, number(y) + host.dataset.unit);
      }
      ticks(0, end, width > 500 ? 6 : 3).filter((x) => x <= end).forEach((x, n, shown) => {
        const anchor = X(x) > width - 40 ? "end" : "middle";
        draw(svg, "text", { x: X(x), y: height - 8, "text-anchor": anchor }, number(x) + (n === shown.length - 1 ? " samples" : ""));
      });
      const path = (curve, ys) => curve.x.map((x, n) => `${X(x).toFixed(1)} ${Y(ys[n]).toFixed(1)}`);
      for (const curve of curves.filter((curve) => curve.low)) {
        const area = [...path(curve, curve.high), ...path(curve, curve.low).reverse()];
        draw(svg, "path", { class: "range " + colour(curve.index), d: `M${area.join("L")}Z` });
      }
      for (const curve of [...curves].sort((a, b) => (a.name === data.best) - (b.name === data.best))) {
        const best = curve.name === data.best ? " best" : "";
        draw(svg, "path", { class: `line ${colour(curve.index)}${best}`, d: "M" + path(curve, curve.y).join("L") });
        if (curve.x.length === 1) draw(svg, "circle", { class: "dot " + colour(curve.index), r: 4, cx: X(curve.x[0]), cy: Y(curve.y[0]) });
      }
      if (named) {
        const labels = curves.map((curve) => ({ curve, y: Y(curve.y.at(-1)) }));
        spreadLabels(labels, 16, height - frame.bottom);
        for (const { curve, y } of labels) {
          const text = curve.name.length > 21 ? curve.name.slice(0, 20) + "…" : curve.name;
          draw(svg, "text", { class: "end " + colour(curve.index), x: width - frame.right + 8, y: y + 4 }, text);
        }
      }
      readable(svg, curves, { X, Y, height, frame, unit: host.dataset.unit });
    }

    function readable(svg, curves, { X, Y, height, frame, unit }) {
      const longest = curves.reduce((a, b) => (b.x.length > a.x.length ? b : a)).x;
      const marks = draw(svg, "g");
      let place = longest.length - 1;

      function show(at, clientX, clientY) {
        place = Math.max(0, Math.min(at, longest.length - 1));
        const x = longest[place];
        marks.replaceChildren();
        draw(marks, "line", { class: "cross", x1: X(x), x2: X(x), y1: frame.top, y2: height - frame.bottom });
        const values = curves.map((curve) => ({ curve, y: curve.y[curve.x.indexOf(x)] })).filter(({ y }) => y !== undefined);
        for (const { curve, y } of values) draw(marks, "circle", { class: "dot " + colour(curve.index), r: 4, cx: X(x), cy: Y(y) });
        const box = svg.getBoundingClientRect();
        showTip(clientX ?? box.left + X(x), clientY ?? box.top + 20, (tip) => {
          const band = data.bands.find(([, start, stop]) => start < x && x <= stop);
          element(tip, "b", "", number(x) + " samples" + (band ? " · " + band[0] : ""));
          for (const { curve, y } of values.sort((a, b) => b.y - a.y)) {
            const row = element(tip, "div");
            element(row, "span", "swatch " + colour(curve.index));
            element(row, "span", "", curve.name);
            element(row, "span", "", number(y) + unit);
          }
        });
      }
      svg.addEventListener("pointermove", (event) => {
        const x = event.clientX - svg.getBoundingClientRect().left;
        const distances = longest.map((value) => Math.abs(X(value) - x));
        show(distances.indexOf(Math.min(...distances)), event.clientX, event.clientY);
      });
      svg.addEventListener("keydown", (event) => {
        const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (move) { event.preventDefault(); show(place + move); }
      });
      for (const name of ["pointerleave", "blur"]) svg.addEventListener(name, () => { marks.replaceChildren(); hideTip(); });
    }

    const drawCharts = () => all("[data-chart]").forEach(lineChart);

    all(".legend").forEach((legend) => data.curves.around.forEach((curve, index) => {
      const button = element(legend, "button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      element(button, "span", "swatch " + colour(index));
      button.append(curve.name);
      button.addEventListener("click", () => {
        if (!hidden.delete(index)) hidden.add(index);
        button.setAttribute("aria-pressed", !hidden.has(index));
        drawCharts();
      });
    }));
    all("[data-curves]").forEach((button, _, buttons) => button.addEventListener("click", () => {
      press(buttons, button);
      const host = find(".accuracy");
      host.dataset.chart = button.dataset.curves;
      lineChart(host);
    }));

    // ---- clusters, step by step ----------------------------------------------------------------
    const DIAMOND = "M0-1 1 0 0 1-1 0Z";
    const STAR = "M0-1.3.38-.4 1.3-.4.57.2.8 1.15 0 .6-.8 1.15-.57.2-1.3-.4-.38-.4Z";
    const ROLES = ["known", "chosen", "new"];
    const WORDS = ["earlier anchor", "new anchor", "sample"];

    function clusterPlayer(scene) {
      const host = find(".scene"), slider = find(".slider"), play = find(".play"), moment = find(".moment");
      const points = scene.frames.flatMap((frame) => frame.points);
      const pictures = new Map(all("img[data-sample]").map((image) => [image.dataset.sample, image.src]));
      const faces = find(".faces");
      faces.checked = points.some((point) => pictures.has(scene.names[point[0]]));
      faces.parentElement.hidden = !faces.checked;
      const span = (n) => { const values = points.map((point) => point[n]); return [Math.min(...values), Math.max(...values)]; };
      const [left, right] = span(1), [low, high] = span(2);
      const heaviest = Math.max(...points.map((point) => point[3]), 1);
      const svg = draw(host, "svg", { role: "img" });
      const spokes = draw(svg, "g"), layer = draw(svg, "g");
      const marks = new Map();
      let timer = null;

      const X = (x) => 24 + ((x - left) / (right - left || 1)) * (host.clientWidth - 48);
      const Y = (y) => 24 + ((high - y) / (high - low || 1)) * (host.clientHeight - 48);
      const radius = (point) => (point[4] === 2 ? 3.2 : ((faces.checked ? (point[4] ? 14 : 9) : 4.5) + 11 * Math.sqrt(point[3] / heaviest)) * Math.min(1, 0.4 + host.clientWidth / 1400));

      function shape(role, picture) {
        const node = draw(layer, "g");
        if (role === 2) draw(node, "circle", { r: 1 });
        else if (!picture) draw(node, "path", { d: role ? STAR : DIAMOND, "vector-effect": "non-scaling-stroke" });
        else {
          draw(node, "rect", { class: "rim", x: -1.15, y: -1.15, width: 2.3, height: 2.3, rx: 0.25, "vector-effect": "non-scaling-stroke" });
          draw(node, "image", { href: picture, x: -1, y: -1, width: 2, height: 2 });
        }
        return node;
      }

      function place(point) {
        const [sample, x, y, weight, role, cluster, tone] = point;
        const picture = faces.checked ? pictures.get(scene.names[sample]) : undefined;
        let mark = marks.get(sample);
        if (!mark || mark.role !== role || mark.picture !== picture) {
          if (mark) mark.node.remove();
          mark = { role, picture, node: shape(role, picture) };
          marks.set(sample, mark);
        }
        mark.node.setAttribute("class", `mark ${ROLES[role]} ${colour(tone)}`);
        mark.node.style.transform = `translate(${X(x).toFixed(1)}px, ${Y(y).toFixed(1)}px) scale(${radius(point).toFixed(2)})`;
        mark.node.onpointerenter = (event) => showTip(event.clientX, event.clientY, (tip) => {
          element(tip, "b", "", scene.names[sample]);
          element(tip, "span", "", `${WORDS[role]}, cluster ${cluster}, weight ${number(weight)}`);
          if (pictures.has(scene.names[sample])) element(tip, "img").src = pictures.get(scene.names[sample]);
        });
        mark.node.onpointerleave = hideTip;
        if (role < 2) layer.append(mark.node);
      }

      function drawSpokes(frame) {
        const clusters = new Map();
        for (const point of frame.points) clusters.set(point[5], [...(clusters.get(point[5]) || []), point]);
        spokes.replaceChildren();
        for (const members of clusters.values()) {
          const middle = [1, 2].map((n) => members.reduce((sum, point) => sum + point[n], 0) / members.length);
          const d = members.map(([, x, y]) => `M${X(middle[0])} ${Y(middle[1])}L${X(x)} ${Y(y)}`).join("");
          for (const kind of ["cloud", "spoke"]) draw(spokes, "path", { class: `${kind} ${colour(members[0][6])}`, d });
        }
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
      return () => show(+slider.value);
    }

    // ---- gallery ---------------------------------------------------------------------------------
    function filterGallery(verdict) {
      all(".cards li").forEach((card) => { card.hidden = verdict !== "all" && !card.classList.contains(verdict); });
      all(".gallery h3").forEach((head) => { head.hidden = !head.nextElementSibling.querySelector("li:not([hidden])"); });
    }
    all("[data-verdict]").forEach((button, _, buttons) => button.addEventListener("click", () => {
      press(buttons, button);
      filterGallery(button.dataset.verdict);
    }));
    find(".which")?.addEventListener("change", (event) => {
      all(".gallery").forEach((gallery, n) => { gallery.hidden = n !== +event.target.value; });
    });

    const redrawScene = data.scene ? clusterPlayer(data.scene) : () => {};
    return () => {
      drawCharts();
      redrawScene();
    };
  }

  // ---- the views and their choice --------------------------------------------------------------
  const views = [...document.querySelectorAll(".view")];
  const redraw = views.map(fill);
  const redrawShown = () => views.forEach((view, n) => { if (!view.hidden) redraw[n](); });
  [...document.querySelectorAll("[data-view]")].forEach((button, chosen, buttons) => button.addEventListener("click", () => {
    press(buttons, button);
    views.forEach((view, n) => { view.hidden = n !== chosen; });
    redrawShown();
  }));
  let width = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    redrawShown();
  }).observe(document.body);
})();
