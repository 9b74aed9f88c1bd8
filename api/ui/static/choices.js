// What can be asked for (voices, languages, styles, limits), and the selects that offer it.

import { request } from "./api.js";
import { known, t } from "./text.js";

class Choices extends EventTarget {
  /** Ask the server; fires "change". */
  async load() {
    const answer = await request("v1/choices");
    Object.assign(this, await answer.json());
    this.dispatchEvent(new Event("change"));
  }

  voice(id) {
    return this.voices.find((voice) => voice.id === id);
  }

  voiceName(id) {
    return this.voice(id || this.default_voice)?.name ?? id;
  }
}

export const choices = new Choices();

/** A language or style in the visitor's words, or as the model calls it. */
export function label(kind, name) {
  const key = `${kind}_${name}`;
  return known(key) ? t(key) : name.charAt(0).toUpperCase() + name.slice(1);
}

/** Fill a select with voices, languages or styles; it keeps its value where that still exists. */
export function offer(select, kind, { own = true } = {}) {
  const options = optionsOf(kind).map(([value, words]) => new Option(words, value));
  if (own && kind !== "voice") options.unshift(new Option(t("as_voice"), ""));
  const { value } = select;
  select.replaceChildren(...options);
  const wanted = options.find((option) => option.value === value);
  select.value = wanted ? value : kind === "voice" ? choices.default_voice : options[0].value;
}

function optionsOf(kind) {
  if (kind === "voice") return choices.voices.map((voice) => [voice.id, voice.name]);
  const names = kind === "language" ? Object.keys(choices.languages) : choices.styles;
  return names.map((name) => [name, label(kind, name)]);
}
