/* The labelling page: shows a question, takes an answer, and shows the next one. */

import { get, post, Refused } from "./api.js";
import { describe, flash, showClasses, showQuestion } from "./board.js";
import { explainWaiting, showCalm } from "./calm.js";
import { AnswerSender } from "./answer_sender.js";
import { connectionText, loginLink, waitingText } from "./connection.js";
import { find, write } from "./dom.js";
import { classOf } from "./keys.js";
import { openGuide, prepareGuide } from "./guide.js";
import { openMine } from "./mine.js";
import { newKey, Outbox, undoKey } from "./outbox.js";
import { identify } from "./person.js";
import { Questions } from "./questions.js";
import { clearRemarks, listenForRemarks, openComment, takeRemarks, toggleFlag } from "./remarks.js";
import { short, whole } from "./words.js";
import { listenForZoom, zoomIn, zoomOut } from "./zoom.js";

const POLL = 2_000; // milliseconds between two polls for a question
const SLOWEST_POLL = 5_000;
const WATCH = 1_000; // milliseconds between two checks of the leases
const READING = 6_000; // milliseconds that a notice stays
const PATIENCE = 300; // seconds without activity before questions are released

const questions = new Questions();
const history = []; // what was answered here, newest last
let classes = [];
let outbox;
let sender;
let visible = null; // the question on the screen
let given = 0; // answers since the page was loaded, without undone ones
let poll = POLL;
let timer = 0;
let lastSign = performance.now() / 1000;
let resting = false;

function announce(text) {
  find("#news").textContent = text;
}

/** Show an important message for a while. */
let closing = 0;
function notify(text) {
  const note = find("#notice");
  note.hidden = false;
  write(note, text);
  clearTimeout(closing);
  closing = setTimeout(() => (note.hidden = true), READING);
}

/* What is on the screen */

function show(said = "") {
  const held = questions.shown;
  find("#desk").hidden = !held;
  find("#calm").hidden = Boolean(held);
  find("#desk").dataset.question = held?.question ?? "";
  find("#skip").disabled = find("#none").disabled = !held;
  if (held && held !== visible) {
    showQuestion(held, (label) => answer("label", label));
    announce(`${said} ${describe(held)}`);
    document.title = "Label · attakit";
  } else if (!held && visible) announce(`${said} Nothing to ask right now.`);
  visible = held ?? null;
  showNumbers();
}

function showNumbers() {
  const { open, left } = questions.counts;
  const before = questions.answeredBefore;
  const answered = (before ?? 0) + given;
  write(find("#answered"), before === null && !given ? "–" : whole(answered));
  write(find("#open"), open === undefined ? "–" : whole(open));
  write(find("#left"), left === undefined ? "–" : left === null ? "no limit" : short(left));
  write(find("#left-name"), left === null ? "on labels" : "budget left");
  find("#undo").disabled = answered === 0;
}

function showConnection() {
  const note = find("#connection");
  const text = connectionText(sender.state, outbox.size);
  note.hidden = !text;
  if (note.dataset.text !== text) note.replaceChildren(text, ...(sender.state === "logged out" ? [" ", loginLink()] : []));
  note.dataset.text = text;
  if (text && !questions.shown) showCalm(...waitingText(sender.state));
}

/* Answers */

function answer(kind, label = null) {
  const held = questions.shown;
  if (!held) return;
  questions.shift();
  const key = newKey();
  outbox.put({ key, question: held.question, kind, label, ...takeRemarks() });
  history.push({ key, held });
  given += 1;
  if (kind === "label") flash(label);
  show({ label: `Answered ${classes[label]}.`, skip: "Skipped.", none: "None of these.", yes: "Yes.", no: "No." }[kind]);
  work();
}

function onAnswer(given, outcome, error) {
  if (error) notify(`An answer was not accepted: ${error.message}`);
  else if (outcome === "final") notify("An answer can no longer be undone: it counts.");
  else if (outcome === "late") notify("An answer came too late: the question was closed before.");
}

async function undo() {
  const last = history.pop();
  const kept = last && outbox.get(last.key);
  if (kept?.tried) outbox.save({ ...kept, withdrawn: true });
  else if (kept) outbox.remove(last.key);
  else return undoOnServer(last);
  takeBack(() => questions.unshift(last.held));
  showConnection();
  return work();
}

async function undoOnServer(last) {
  try {
    const key = undoKey(last?.key ?? newKey());
    const lease = await post("/v1/questions/undo", { key, answer: last?.key ?? null, besides: questions.numbers });
    sender.reached();
    takeBack(() => questions.accept(lease, last?.held));
  } catch (error) {
    if (error instanceof Refused && !error.passing) return notify(error.message);
    if (last) history.push(last);
    sender.lost(error);
  }
}

/** Change an answer from the list. Pending answers are sent first, so that the server knows them. */
async function change({ key }) {
  await sender.send();
  const place = history.findIndex((past) => past.key === key);
  const [past] = place < 0 ? [{ key }] : history.splice(place, 1);
  await undoOnServer(past);
}

function takeBack(put) {
  clearRemarks();
  put();
  given -= 1;
  show("Undone.");
}

/* Polling */

const onTheirWay = () => outbox.all().map((kept) => kept.question);

/** Send answers, then fetch questions; called whenever something may have changed. */
async function work() {
  clearTimeout(timer);
  if (!(await sender.send()) || resting) return;
  try {
    if (isHere() || !questions.shown) await questions.fill(onTheirWay);
    show();
    if (!questions.shown) await wait();
    sender.reached();
  } catch (error) {
    sender.lost(error);
    return;
  }
  poll = questions.shown ? POLL : Math.min(1.3 * poll, SLOWEST_POLL);
  schedule();
}

async function wait() {
  const { open, left } = await explainWaiting();
  questions.counts = { ...questions.counts, open, left };
  showNumbers();
}

function schedule() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(work, poll);
}

const isHere = () => performance.now() / 1000 - lastSign < PATIENCE;

/** Renew the leases of an active person; release the questions of one who has left. */
async function watch(all = false) {
  if (sender.state !== "online" || !questions.shown) return;
  try {
    if (isHere()) await questions.renew(all);
    else questions.dropEnded();
  } catch (error) {
    sender.lost(error);
  }
  show();
  if (!questions.shown && !isHere()) rest();
}

function rest() {
  clearTimeout(timer);
  resting = true;
  showCalm("Taking a break?", "Your questions were released, so that others can answer them.", "Continue", wake);
}

/** Record activity. */
function wake() {
  lastSign = performance.now() / 1000;
  if (!resting) return;
  resting = false;
  work();
}

/** Another tab of the same person may have taken the leases meanwhile. */
async function onVisible() {
  if (document.hidden) return;
  wake();
  await watch(true);
  work();
}

/* Input */

function onKey(event) {
  wake();
  // The browser would press the first guess of every question that comes while Enter is held.
  if (event.repeat && event.key === "Enter") event.preventDefault();
  const busy = event.ctrlKey || event.metaKey || event.altKey || event.repeat || find("dialog[open]");
  if (busy || event.target.matches("input")) return;
  const act = action(event);
  if (!act) return;
  event.preventDefault();
  act();
}

function action(event) {
  const key = event.key.toLowerCase();
  if (key === "u" || key === "backspace") return undo;
  if (asksYesNo() && (key === "y" || key === "n")) return () => answer(key === "y" ? "yes" : "no");
  if (key === "n") return () => answer("none");
  // A person who walks through the buttons with Tab expects Space to press the one they are on.
  if (key === " ") return event.target.matches("button:focus-visible, a") ? null : () => answer("skip");
  if (key === "/" && !asksYesNo() && !find("#find").hidden) return () => find("#find").focus();
  const tool = { "?": openGuide, "+": zoomIn, "=": zoomIn, "-": zoomOut, "!": toggleFlag, ";": openComment }[key];
  if (tool) return questions.shown || key === "?" ? () => tool() : null;
  const label = asksYesNo() ? -1 : classOf(key);
  return label >= 0 ? () => answer("label", label) : null;
}

const asksYesNo = () => (questions.shown?.proposed ?? null) !== null;

function listen() {
  addEventListener("keydown", onKey);
  addEventListener("pointerdown", wake);
  // A button that was clicked must not keep Space for itself: it means skip. Keys click with detail 0.
  addEventListener("click", (event) => event.detail && event.target.closest("button")?.blur());
  find("#skip").addEventListener("click", () => answer("skip"));
  find("#none").addEventListener("click", () => answer("none"));
  for (const kind of ["yes", "no"]) find(`#${kind}`).addEventListener("click", () => answer(kind));
  find("#undo").addEventListener("click", undo);
  find("#mine-button").addEventListener("click", () => openMine(classes, change));
  listenForZoom();
  listenForRemarks();
  addEventListener("pagehide", () => {
    sender.leave();
    questions.release();
  });
  addEventListener("pageshow", (event) => event.persisted && work());
  document.addEventListener("visibilitychange", onVisible);
  setInterval(() => watch(), WATCH);
}

function onState() {
  showConnection();
  if (sender.state === "online" && questions.size === 0) schedule();
}

async function fetchClasses() {
  for (;;) {
    try {
      return (await get("/v1/classes")).classes;
    } catch (error) {
      sender.lost(error);
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }
}

async function start() {
  const name = await identify();
  outbox = new Outbox(name);
  sender = new AnswerSender(outbox, onAnswer, onState, () => questions.numbers);
  show();
  classes = await fetchClasses();
  showClasses(classes, (label) => answer("label", label));
  listen();
  prepareGuide();
  work();
}

start();
