// A Speech → what it is doing in a sentence, and its figures.

import { number, t } from "./text.js";

/** 1st, 2nd … in the visitor's language. */
export function ordinal(position) {
  if (t("locale") !== "en") return `${position}.`;
  const kind = new Intl.PluralRules("en", { type: "ordinal" }).select(position);
  return position + { one: "st", two: "nd", few: "rd", other: "th" }[kind];
}

/** Say it in `element`; errors come with what to do. `brief`: where there is little room. */
export function describe(element, speech, { brief = false } = {}) {
  element.dataset.state = speech?.state ?? "idle";
  // Screen readers hear what has changed, not every tenth of a second.
  element.setAttribute("aria-live", speech?.state === "speaking" ? "off" : "polite");
  const sounds = brief && speech?.track.length && speech.state !== "failed";
  const words = sounds ? [`${number(speech.track.seconds, 1)} s`] : sentence(speech);
  element.replaceChildren(...words);
}

function sentence(speech) {
  switch (speech?.state) {
    case "line":
      return [t("in_line", { place: ordinal(speech.position) })];
    case "failed": {
      const words = document.createElement("strong");
      words.textContent = speech.error.words;
      return [words, ` ${speech.error.advice}`];
    }
    case "speaking":
    case "done":
    case "stopped": {
      const last = speech.marks.at(-1);
      const values = {
        n: last ? last.segment.index + 1 : 0,
        m: speech.segments,
        seconds: number(speech.track.seconds, 1),
      };
      const key = speech.state === "speaking" && !last ? "state_sounding" : `state_${speech.state}`;
      return [t(key, values)];
    }
    default:
      return [t(`state_${speech?.state ?? "idle"}`)];
  }
}

/** Seconds made, time to first audio, real-time factor. The places are there from the beginning. */
export function figures(list, speech) {
  const none = "–";
  const entries = [
    ["figure_ready", speech ? `${number(speech.track.seconds, 1)} s` : none],
    ["figure_ttfa", speech?.ttfa == null ? none : `${number(speech.ttfa / 1000, 2)} s`],
    ["figure_rtf", speech?.rtf == null ? none : number(speech.rtf, 2)],
    ["figure_segment", speech?.segments ? place(speech) : none],
  ];
  if (list.children.length !== entries.length) {
    list.replaceChildren(...entries.map(() => pair()));
  }
  entries.forEach(([key, value], index) => {
    const [term, meaning] = list.children[index].children;
    term.textContent = t(key);
    term.title = t(`${key}_hint`);
    meaning.textContent = value;
  });
}

const place = (speech) =>
  t("n_of_m", { n: speech.marks.at(-1).segment.index + 1, m: speech.segments });

function pair() {
  const box = document.createElement("div");
  box.append(document.createElement("dt"), document.createElement("dd"));
  return box;
}
