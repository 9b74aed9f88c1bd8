// The page's words: the table of the visitor's language, put into elements that name their keys.

const LANGUAGES = ["en", "de"];
let table = {};

/** The visitor's language, as far as we speak it. */
export function pickLanguage(wanted = navigator.languages) {
  const codes = wanted.map((tag) => tag.slice(0, 2).toLowerCase());
  return codes.find((code) => LANGUAGES.includes(code)) ?? "en";
}

/** Load the words; must have happened before anything is said. */
export async function loadTexts() {
  const language = pickLanguage();
  const answer = await fetch(new URL(`text/${language}.json`, import.meta.url));
  table = await answer.json();
  return language;
}

/** The words for a key, with {name} filled in from `values`. */
export function t(key, values = {}) {
  const words = table[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);
}

/** Whether there are words for a key. */
export const known = (key) => key in table;

/** A number as people here write it. */
export function number(value, digits = 0) {
  return value.toLocaleString(t("locale"), {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Minutes and seconds: 1:05. */
export function clock(seconds) {
  const whole = Math.floor(seconds + 1e-6);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** Fill what `data-t` (text), `data-t-label` (for screen readers), `-hint`, `-placeholder` name. */
export function translate(root) {
  const each = (name, put) => {
    for (const element of root.querySelectorAll(`[data-${name}]`)) {
      put(element, t(element.getAttribute(`data-${name}`)));
    }
  };
  each("t", (element, words) => (element.textContent = words));
  each("t-label", (element, words) => element.setAttribute("aria-label", words));
  each("t-hint", (element, words) => element.setAttribute("title", words));
  each("t-placeholder", (element, words) => element.setAttribute("placeholder", words));
}
