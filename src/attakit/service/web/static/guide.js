/* How to label: instructions, and what each class looks like. */

import { get } from "./api.js";
import { find, make, sharpen } from "./dom.js";
import { keyAndName } from "./key_caps.js";

/** Fetch the guide, and offer it if it says anything. */
export async function prepareGuide() {
  const guide = await get("/v1/guide").catch(() => null);
  const known = guide?.classes.filter(({ about, examples }) => about || examples.length) ?? [];
  if (!guide || !(guide.instructions || known.length)) return;
  find("#guide-text").replaceChildren(...paragraphs(guide.instructions));
  find("#guide-classes").replaceChildren(...(known.length ? guide.classes.map(classGuide) : []));
  find("#guide-button").hidden = false;
  find("#guide-button").addEventListener("click", openGuide);
}

export function openGuide() {
  if (!find("#guide-button").hidden) find("#guide").showModal();
}

const paragraphs = (text) => text.split(/\n\s*\n/).filter(Boolean).map((part) => make("p", {}, part.trim()));

function classGuide({ class: name, about, examples }, label) {
  const pictures = examples.map((address, place) => {
    const image = make("img", { loading: "lazy", alt: `Example ${place + 1} of ${name}`, onload: () => sharpen(image) });
    image.src = address;
    return image;
  });
  return make("li", {},
    make("h3", {}, ...keyAndName(label, name)),
    about ? make("p", {}, about) : null,
    pictures.length ? make("div", { class: "examples" }, ...pictures) : null);
}
