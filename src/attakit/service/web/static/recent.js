/* The newest questions with their pictures and what people said that counts. */

import { find, make, sharpen } from "./dom.js";
import { ago, percent } from "./words.js";

const STATES = { open: "open", skipped: "skipped", none: "none of these", expired: "expired", forgotten: "forgotten" };
const PAST = { skip: "skipped", none: "none", no: "no" };

export function showRecent(questions, classes) {
  const place = find("#recent");
  if (questions.length === 0) {
    place.replaceChildren(make("p", { class: "empty" }, make("b", {}, "No question yet"), "Samples that the model is unsure about, and a few drawn at random, will appear here."));
    return;
  }
  const before = new Map([...place.querySelectorAll("li")].map((card) => [card.dataset.question, card]));
  const cards = questions.map((question) => card(question, classes, before.get(String(question.question))));
  place.replaceChildren(make("ul", { class: "recent" }, ...cards));
}

/** Keep pictures that are already shown, so that nothing flickers or is fetched twice. */
function card(question, classes, before) {
  const known = question.state === "forgotten" ? null : before?.querySelector(".thumb");
  const picture = known ?? thumbnail(question);
  return make("li", { "data-question": question.question }, picture, said(question, classes));
}

function thumbnail(question) {
  const image = make("img", { alt: "", loading: "lazy", onload: () => sharpen(image), onerror: () => image.replaceWith("no picture") });
  if (question.state === "forgotten") return make("div", { class: "thumb" }, "removed");
  if (!question.image) return make("div", { class: "thumb words" }, make("span", {}, question.text ?? question.id ?? `sample ${question.sample.slice(0, 8)}`));
  image.src = question.image;
  return make("div", { class: "thumb" }, image);
}

function said(question, classes) {
  const { label: guess, probability } = question.guesses[0] ?? {};
  const lines = [make("b", {}, outcome(question, classes, guess))];
  if (guess !== undefined) lines.push(make("span", {}, `guess: ${classes[guess] ?? guess}, ${percent(probability)}`));
  lines.push(make("span", {}, who(question)));
  const remarks = question.answers.filter((answer) => answer.flagged || answer.comment);
  lines.push(...remarks.map((answer) => make("span", { class: "remark" }, answer.flagged ? make("b", { class: "pill held" }, "flagged") : null, answer.comment ? ` “${answer.comment}”` : "")));
  return make("div", { class: "said" }, ...lines);
}

function outcome(question, classes, guess) {
  const counting = question.answers.filter((answer) => answer.counts);
  if (question.state === "open" && counting.length) {
    const choices = counting.map(({ kind, label }) => (kind === "label" ? classes[label] : stateText(PAST[kind], question, classes)));
    return `${[...new Set(choices)].join(" or ")}, not final yet`;
  }
  if (question.state !== "answered") return stateText(question.state, question, classes);
  return make("span", { class: question.label === guess ? "agrees" : "differs" }, classes[question.label] ?? String(question.label));
}

function stateText(state, { proposed }, classes) {
  return state === "no" ? `not ${classes[proposed] ?? proposed}` : STATES[state] ?? state;
}

function who(question) {
  const counting = question.answers.filter((answer) => answer.counts);
  const people = counting.map((answer) => answer.who.replace(/^local:/, ""));
  return people.length ? `${[...new Set(people)].join(", ")}, ${ago(counting.at(-1).at)}` : `asked ${ago(question.at)}`;
}
