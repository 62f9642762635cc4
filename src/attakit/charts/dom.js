/* Creates elements. Text from people or servers never becomes markup. */

const SVG = "http://www.w3.org/2000/svg";

export const find = (selector) => document.querySelector(selector);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A sentence whose parts in backticks are shown as code. */
export const prose = (text) => text.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part));

/** Change the text only if it differs, so that screen readers and selections are not disturbed. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Show a small picture with hard pixels rather than as a blur. */
export function sharpen(image) {
  const tiny = 128;
  image.classList.toggle("coarse", Math.max(image.naturalWidth, image.naturalHeight) <= tiny);
}

/** Redraw a part only if its content has changed. */
export function onChange(render) {
  let before;
  return (data) => {
    const now = JSON.stringify(data);
    if (now === before) return;
    before = now;
    render(data);
  };
}
