/* The list of your answers: content, whether it is final, and a button to change it. */

import { get } from "./api.js";
import { find, make, sharpen } from "./dom.js";
import { ago } from "./words.js";

const KINDS = { skip: "skipped", none: "none of these" };

/** Open the list; `change(answer)` is called for an answer to change. */
export async function openMine(classes, change) {
  const list = find("#mine-list");
  list.replaceChildren(make("li", {}, "Reading your answers …"));
  find("#mine").showModal();
  try {
    const { answers } = await get("/v1/questions/mine?limit=50");
    list.replaceChildren(...(answers.length ? answers.map((answer) => row(answer, classes, change)) : [make("li", {}, "You have not answered anything yet.")]));
  } catch (error) {
    list.replaceChildren(make("li", {}, `Your answers cannot be shown: ${error.message}`));
  }
}

function row(answer, classes, change) {
  const remarks = [answer.flagged ? "flagged" : "", answer.comment ? `“${answer.comment}”` : ""].filter(Boolean).join(", ");
  const pick = () => {
    find("#mine").close();
    change(answer);
  };
  return make("li", {},
    thumbnail(answer),
    make("div", { class: "mine-said" }, make("b", {}, said(answer, classes)), make("span", {}, ago(answer.at)), remarks ? make("span", {}, remarks) : null),
    answer.final ? make("span", { class: "soft" }, "final") : make("button", { type: "button", onclick: pick }, "Change"));
}

function said({ kind, label, proposed }, classes) {
  if (kind === "no") return `not ${classes[proposed] ?? proposed}`;
  if (kind !== "label") return KINDS[kind] ?? kind;
  return proposed === label ? `yes, ${classes[label]}` : classes[label] ?? String(label);
}

function thumbnail({ image: address, text }) {
  if (!address) return make("span", { class: "mine-thumb words" }, text ?? "");
  const image = make("img", { class: "mine-thumb", alt: "", loading: "lazy", onload: () => sharpen(image), onerror: () => image.replaceWith(make("span", { class: "mine-thumb" })) });
  image.src = address;
  return image;
}
