/* Makes the picture larger: wheel, two fingers, double click, buttons and the keys + and -. Dragging moves it. */

import { find } from "./dom.js";

const LARGEST = 8;
const STEP = 1.6;
const pointers = new Map();
let scale = 1, x = 0, y = 0;

const frame = () => find("#picture");
const picture = () => frame().querySelector("img");
const distance = () => {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a.x - b.x, a.y - b.y);
};

function apply() {
  const image = picture();
  if (!image) return;
  const { clientWidth: width, clientHeight: height } = frame();
  const room = (scale - 1) / 2;
  x = Math.max(-room * width, Math.min(room * width, x));
  y = Math.max(-room * height, Math.min(room * height, y));
  image.style.transform = scale === 1 ? "" : `translate(${x}px, ${y}px) scale(${scale})`;
  frame().classList.toggle("zoomed", scale > 1);
  find("#zoom-out").disabled = scale === 1;
  find("#zoom-in").disabled = scale === LARGEST;
}

/** Zoom by a factor around a point of the window, by default the middle of the frame. */
function zoomBy(factor, at) {
  const box = frame().getBoundingClientRect();
  const next = Math.max(1, Math.min(LARGEST, scale * factor));
  const [left, top] = at ? [at.clientX - box.left - box.width / 2, at.clientY - box.top - box.height / 2] : [0, 0];
  x = left - ((left - x) * next) / scale;
  y = top - ((top - y) * next) / scale;
  scale = next;
  apply();
}

export const zoomIn = () => picture() && zoomBy(STEP);
export const zoomOut = () => picture() && zoomBy(1 / STEP);

/** Show the next picture as a whole. */
export function resetZoom() {
  [scale, x, y] = [1, 0, 0];
  pointers.clear();
  apply();
}

function onMove(event) {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const apart = pointers.size === 2 ? distance() : 0;
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  if (apart) return zoomBy(distance() / apart, event);
  if (scale === 1) return;
  x += event.clientX - before.x;
  y += event.clientY - before.y;
  apply();
}

export function listenForZoom() {
  const place = frame();
  place.addEventListener("wheel", (event) => {
    if (!picture()) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 300), event);
  }, { passive: false });
  place.addEventListener("dblclick", (event) => picture() && (scale > 1 ? resetZoom() : zoomBy(3, event)));
  place.addEventListener("pointerdown", (event) => picture() && pointers.set(event.pointerId, { x: event.clientX, y: event.clientY }));
  addEventListener("pointermove", onMove);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, (event) => pointers.delete(event.pointerId));
  find("#zoom-in").addEventListener("click", zoomIn);
  find("#zoom-out").addEventListener("click", zoomOut);
}
