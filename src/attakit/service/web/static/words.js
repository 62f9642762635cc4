/* Numbers and times in words. */

import { serverTime } from "./api.js";

export function percent(share, digits = 0) {
  const least = 0.5 / 10 ** (digits + 2);
  const number = share > 0 && share < least ? `<${(2 * 100 * least).toFixed(digits)}` : (100 * share).toFixed(digits);
  return `${number}\u00a0%`; // keep it with its number
}

/** A difference of shares in percentage points, with its sign. */
export function points(difference) {
  const number = Math.round(100 * difference);
  return `${number > 0 ? "+" : number < 0 ? "\u2212" : "±"}${Math.abs(number)}`;
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
  return String(Number(number.toPrecision(3))).replace("-", "\u2212");
}

export const milliseconds = (seconds) => (seconds < 1 ? `${short(Number((1000 * seconds).toPrecision(2)))}\u00a0ms` : `${short(seconds)}\u00a0s`);

export function ago(seconds) {
  const past = Math.max(0, serverTime() - seconds);
  if (past < 10) return "just now";
  if (past < 60) return `${Math.floor(past / 10) * 10} s ago`;
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86_400) return `${Math.floor(past / 3600)} h ago`;
  return `${count(Math.floor(past / 86_400), "day")} ago`;
}

const HOURS = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const DATE = { day: "numeric", month: "short" };
const DAY = 86_400;
const STEPS = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 90 * DAY, 365 * DAY];

/** Time of day, with the date unless it is today. */
export function moment(seconds) {
  const date = new Date(1000 * seconds);
  const today = date.toDateString() === new Date(1000 * serverTime()).toDateString();
  return today ? clock(seconds) : date.toLocaleString([], { ...DATE, ...HOURS });
}

export function clock(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString([], { ...HOURS, second: "2-digit" });
}

/** Round times of day between two times, at most as many as wanted. */
export function timeTicks(start, end, wanted) {
  const step = STEPS.find((one) => (end - start) / one <= wanted) ?? STEPS.at(-1);
  const shift = 60 * new Date(1000 * start).getTimezoneOffset(); // whole hours and days are local
  const first = Math.ceil((start - shift) / step) * step + shift;
  return Array.from({ length: Math.max(0, Math.floor((end - first) / step) + 1) }, (_, place) => first + place * step);
}

/** A time on the axis of a chart that covers this many seconds. */
export function timeText(seconds, span) {
  const date = new Date(1000 * seconds);
  if (span > 3 * DAY) return date.toLocaleDateString([], DATE);
  return span < 300 ? clock(seconds) : date.toLocaleTimeString([], HOURS);
}
