/* Messages for when the server cannot be reached. */

import { make } from "./dom.js";
import { count } from "./words.js";

const KEPT = {
  offline: (kept) => `Offline${kept ? `, ${count(kept, "answer")} kept` : ""}. You can continue: everything is sent when the connection is back.`,
  busy: (kept) => `The server is busy${kept ? `, ${count(kept, "answer")} kept` : ""}. Trying again automatically.`,
  "logged out": (kept) => `You are logged out${kept ? `, ${count(kept, "answer")} kept` : ""}. Log in again to continue.`,
};

const WAITING = {
  offline: ["No connection", "The next question comes when the connection is back."],
  busy: ["The server is busy", "The next question comes as soon as it answers."],
  "logged out": ["You are logged out", "The next question comes when you have logged in again."],
};

/** A sentence about a state of the connection, and how many answers are kept; empty if all is well. */
export const connectionText = (state, kept) => KEPT[state]?.(kept) ?? "";

/** Title and text for a page that has no question to show meanwhile. */
export const waitingText = (state) => WAITING[state];

export const loginLink = () => make("a", { href: "/login?next=/label" }, "Log in");
