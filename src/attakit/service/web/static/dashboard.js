/* The dashboard: polls the service every two seconds and shows changes. */

import { get, post, serverTime } from "./api.js";
import { showAudit } from "./audit.js";
import { showComparison } from "./comparison.js";
import { find, make, onChange, prose, write } from "./dom.js";
import { showNumbers } from "./numbers.js";
import { showCharts, trafficAddress } from "./over_time.js";
import { showEvents, showPeople } from "./people.js";
import { showRecent } from "./recent.js";
import { showVersions } from "./versions.js";
import { ago } from "./words.js";

const POLL = 2_000;
const SLOWEST_POLL = 30_000;
const READING = 6_000; // milliseconds that a notice stays
const ALARMS = 3;
const admin = document.body.dataset.role === "admin";
let classes = [];
let pause = POLL;
let timer = 0;
let paused = false;

/* Showing */

const refreshVersions = onChange(({ versions }) => {
  showVersions(versions, admin ? promote : null, admin);
  showComparison(versions);
});
const refreshAudit = onChange(showAudit);
const refreshPeople = onChange(showPeople);
const refreshEvents = onChange(showEvents);
const refreshRecent = onChange(({ questions }) => showRecent(questions, classes));

function showAlarms(alarms) {
  const newest = [...alarms].sort((a, b) => b.at - a.at).slice(0, ALARMS);
  const lines = newest.map((alarm) => make("li", {}, make("b", {}, alarm.what), make("span", {}, ...prose(alarm.text)), make("time", {}, ago(alarm.at))));
  find("#alarms").replaceChildren(...(lines.length ? [make("ul", { class: "alarms" }, ...lines)] : []));
}

const showWelcome = (status) => {
  find("#welcome").hidden = status.served > 0;
  const example = find("#example");
  write(example, `curl ${example.dataset.input} ${location.origin}/v1/predict`);
};

function showLearning(status) {
  paused = status.learning === "paused";
  const button = find("#learning");
  button.hidden = !admin;
  write(button, paused ? "Resume learning" : "Pause learning");
}

/* Acting */

function confirm(title, text, yes) {
  const dialog = find("#confirm");
  write(find("#confirm-title"), title);
  write(find("#confirm-text"), text);
  write(find("#confirm-yes"), yes);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

async function promote(version) {
  const warning = version.gate && !version.gate.passed ? ` The gate held it back: ${version.gate.reason}` : "";
  const text = `From the next request on, version ${version.version} answers. Learning continues, and a later version may be promoted when it passes the gate.${warning}`;
  if (!(await confirm(`Bring version ${version.version} back?`, text, `Use version ${version.version}`))) return;
  await act(`/v1/versions/${version.version}/promote`, {}, `Version ${version.version} serves now.`);
}

async function act(path, body, done) {
  try {
    await post(path, body);
    notify(done, true);
  } catch (error) {
    notify(`This failed: ${error.message}`, false);
  }
  closing = setTimeout(() => (find("#connection").hidden = true), READING);
  await refresh();
}

let closing = 0;
function notify(text, good) {
  const note = find("#connection");
  note.classList.toggle("good", good);
  note.hidden = false;
  write(note, text);
  clearTimeout(closing);
}

/* Polling */

async function loadAll() {
  if (!classes.length) classes = (await get("/v1/classes")).classes;
  const range = find("#range").value;
  const [status, series, versions, questions] = await Promise.all(
    ["/v1/status", `/v1/series?points=200${range && `&seconds=${Number(range)}`}`, "/v1/versions", "/v1/questions?limit=12"].map(get));
  showNumbers(status);
  showWelcome(status);
  showLearning(status);
  const { points } = await get(trafficAddress(range, series.turns, serverTime()));
  showCharts({ ...series, points });
  showAlarms(series.alarms.filter(({ rose }) => rose));
  const minute = Math.floor(Date.now() / 60_000); // "5 min ago" is out of date a minute later
  refreshVersions({ ...versions, minute });
  refreshRecent({ ...questions, minute });
  await loadSlowly(minute, status.annotators);
}

/** Slow data is read only every few rounds. */
let rounds = 0;
async function loadSlowly(minute, annotators) {
  if (rounds++ % 5) return;
  const [audit, people, events] = await Promise.all(["/v1/audit", "/v1/people", "/v1/events?limit=60"].map(get));
  refreshAudit(audit);
  refreshPeople({ ...people, annotators, minute });
  refreshEvents({ ...events, minute });
}

let failing = false;
async function refresh() {
  clearTimeout(timer);
  try {
    await loadAll();
    if (failing) find("#connection").hidden = true;
    [failing, pause] = [false, POLL];
  } catch (error) {
    console.debug(error);
    failing = true;
    pause = Math.min(2 * pause, SLOWEST_POLL);
    notify(error.needsLogin ? "You are logged out. Log in again to see what happens." : "The service does not answer. You see its last numbers. Trying again automatically.", false);
  }
  if (!document.hidden) timer = setTimeout(refresh, pause);
}

find("#learning").addEventListener("click", () =>
  act("/v1/learning", { paused: !paused }, paused ? "Learning continues." : "Learning is paused. Predictions continue as before."));
find("#range").addEventListener("change", refresh);
// A phone shows only the headings of long parts; a tap opens them.
if (matchMedia("(max-width: 640px)").matches) document.querySelectorAll("details.card").forEach((part) => (part.open = false));
document.addEventListener("visibilitychange", () => document.hidden || refresh());
addEventListener("online", refresh);
refresh();
