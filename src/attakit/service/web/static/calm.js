/* What the page says while there is no question to show. */

import { get } from "./api.js";
import { find, write } from "./dom.js";
import { count } from "./words.js";

const IDLE = ["Nothing to ask right now", "New questions appear here automatically. You can leave this page open."];

/** Show the calm state, with a button if something is to be done. */
export function showCalm(title, text, button, act) {
  write(find("#calm-title"), title);
  write(find("#calm-text"), text);
  const shown = find("#calm-button");
  shown.hidden = !button;
  write(shown, button ?? "");
  shown.onclick = act ?? null;
}

/** Say why there is nothing to ask, and return how many labels are open and left. */
export async function explainWaiting() {
  const status = await get("/v1/status");
  showCalm(...whyWaiting(status));
  return status.labels;
}

function whyWaiting(status) {
  const { open, left } = status.labels;
  if (left === 0 && !open) return ["The label budget is spent", "Every question that may be asked has been asked. Thank you!"];
  if (open) return ["Nothing for you right now", `${count(open, "question")} still open: with other people, or answered by you a moment ago. What is left for you appears here automatically.`];
  if (status.learning === "paused") return ["Learning is paused", "No new questions are asked until an administrator resumes it on the dashboard. This page then continues automatically."];
  if (status.learning === "stopped") return ["The learner is not running", "Questions come when it is back. This page then continues automatically."];
  return IDLE;
}
