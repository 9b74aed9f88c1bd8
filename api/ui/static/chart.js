// Values of streams, oldest first → a small chart: a point each, lines to read them by, a median.

import { number, t } from "./text.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [420, 174, 44, 8, 16];

/**
 * Draw into `element`. `unit` and `digits` are for the numbers; `limit` is a value worth a line of
 * its own, named by `limitWords`.
 */
export function chart(element, values, { unit, digits, limit = null, limitWords = "" }) {
  if (!values.length) {
    const empty = document.createElement("p");
    empty.className = "soft";
    empty.textContent = t("status_none");
    element.replaceChildren(empty);
    return;
  }
  const words = (value) => number(value, digits) + unit;
  const top = niceAbove(Math.max(...values, limit ?? 0));
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const x = (index) => LEFT + 8 + (index / Math.max(1, values.length - 1)) * (WIDTH - LEFT - 16);
  const middle = median(values);
  const summary = { n: values.length, median: words(middle), last: words(values.at(-1)) };
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  svg.setAttribute("aria-label", t("status_chart", summary));
  for (const value of [0, top / 2, top]) svg.append(...line(y(value), words(value), "grid"));
  svg.append(...line(y(middle), "", "median"));
  if (limit !== null) svg.append(...line(y(limit), limitWords, "limit", true));
  values.forEach((value, index) => {
    const point = make("circle", { cx: x(index), cy: y(value), r: 3, class: "point" });
    const title = make("title", {});
    title.textContent = words(value);
    point.append(title);
    svg.append(point);
  });
  element.replaceChildren(svg);
}

function line(y, words, kind, right = false) {
  const text = make("text", {
    x: right ? WIDTH - 4 : LEFT - 6,
    y: right ? y - 4 : y + 4,
    "text-anchor": "end",
  });
  text.textContent = words;
  return [make("line", { x1: LEFT, x2: WIDTH, y1: y, y2: y, class: kind }), text];
}

function make(name, attributes) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** 1, 2 or 5 times a power of ten, at least `value`. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}
