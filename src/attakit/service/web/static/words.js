/* Numbers and times in words. */

import { serverTime } from "./api.js";

export function percent(share, digits = 0) {
  const least = 0.5 / 10 ** (digits + 2);
  const number = share > 0 && share < least ? `<${(2 * 100 * least).toFixed(digits)}` : (100 * share).toFixed(digits);
  return `${number}\u00a0%`; // keep it with its number
}

export function count(number, one) {
  return `${whole(number)} ${one}${number === 1 ? "" : "s"}`;
}

export function whole(number) {
  return Math.round(number).toLocaleString("en").replaceAll(",", "\u202f");
}

/** Three digits, without trailing noise. */
export function short(number) {
  if (Math.abs(number) >= 100) return whole(number);
  return String(Number(number.toPrecision(3)));
}

export function ago(seconds) {
  const past = Math.max(0, serverTime() - seconds);
  if (past < 10) return "just now";
  if (past < 60) return `${Math.floor(past / 10) * 10} s ago`;
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86_400) return `${Math.floor(past / 3600)} h ago`;
  return `${count(Math.floor(past / 86_400), "day")} ago`;
}

/** Time of day, with the date unless it is today. */
export function moment(seconds) {
  const date = new Date(1000 * seconds);
  const today = date.toDateString() === new Date(1000 * serverTime()).toDateString();
  return today ? clock(seconds) : date.toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

export function clock(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
