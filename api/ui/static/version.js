// One card of the comparison: its settings, its speech, its waveform, its buttons.

import { choices, label, offer } from "./choices.js";
import { describe } from "./figures.js";
import { Speech } from "./speech.js";
import { number, t, translate } from "./text.js";
import { Waveform } from "./waveform.js";

const FIELDS = ["voice", "language", "style", "temperature"];

export class Version {
  #template = document.getElementById("version-template");

  /** `settings` by field name; `on`: what to call for {play, seek, vote, remove, change}. */
  constructor(settings, on) {
    this.element = this.#template.content.firstElementChild.cloneNode(true);
    translate(this.element);
    this.speech = null;
    this.wave = new Waveform(this.#find(".wave"), (seconds) => on.seek(this, seconds));
    this.offer();
    for (const name of FIELDS) this.#field(name).value = settings[name] ?? "";
    if (!this.#field("voice").value) this.#field("voice").value = choices.default_voice;
    for (const name of ["play", "vote", "remove"]) {
      this.#find(`.${name}`).addEventListener("click", () => on[name](this));
    }
    this.element.addEventListener("input", () => this.forget());
    this.onchange = () => on.change(this);
  }

  /** Its letter, A to F, and whether it may be taken away. */
  place(letter, removable) {
    this.letter = letter;
    this.#find(".letter").textContent = letter;
    this.element.setAttribute("aria-label", t("version", { letter }));
    this.#find(".play").setAttribute("aria-label", t("version_play", { letter }));
    this.#find(".vote").setAttribute("aria-label", t("vote_label", { letter }));
    this.#find(".remove").setAttribute("aria-label", t("compare_remove", { letter }));
    this.#find(".remove").hidden = !removable;
  }

  /** The choices have changed. */
  offer() {
    for (const name of ["voice", "language", "style"]) offer(this.#field(name), name);
    this.#field("temperature").placeholder = choices.defaults.temperature;
  }

  get settings() {
    const entries = FIELDS.map((name) => [name, this.#field(name).value]);
    return Object.fromEntries(entries.filter(([, value]) => value !== ""));
  }

  /** Its settings in a line, for people. */
  get words() {
    const { voice, language, style, temperature } = this.settings;
    const found = choices.voice(voice);
    const parts = [
      found?.name ?? voice,
      label("language", language ?? found?.language ?? ""),
      label("style", style ?? found?.style ?? ""),
    ];
    if (temperature !== undefined) parts.push(number(Number(temperature), 2));
    return parts.join(" · ");
  }

  /** Speak; resolves when it is over. */
  async speak(input, seed) {
    const { temperature, ...words } = this.settings;
    const body = { model: "tontaube-v1", input, seed, ...words };
    if (temperature !== undefined) body.temperature = Number(temperature);
    const speech = (this.speech = new Speech(body));
    this.wave.show(speech.track);
    speech.addEventListener("change", () => {
      if (speech !== this.speech) return;
      this.show();
      this.onchange();
    });
    this.show();
    await speech.run({ captions: false });
  }

  /** What was spoken does not fit the settings any more. */
  forget() {
    this.speech?.stop();
    this.speech = null;
    this.wave.show(null);
    this.show();
    this.onchange();
  }

  get playable() {
    return Boolean(this.speech?.track.length);
  }

  /** Renew the card: `state` of its sound, whether it is covered, whether votes count. */
  show({ state = "play", covered = this.covered, voting = this.voting, best = this.best } = {}) {
    Object.assign(this, { covered, voting, best });
    const play = this.#find(".play");
    play.disabled = !this.playable;
    play.dataset.state = state;
    this.#find(".vote").disabled = !voting;
    this.element.classList.toggle("covered", Boolean(covered));
    this.element.classList.toggle("sounding", state === "pause");
    this.element.classList.toggle("best", Boolean(best));
    if (this.speech) describe(this.#find(".line"), this.speech, { brief: true });
    else this.#find(".line").textContent = "";
  }

  #find(selector) {
    return this.element.querySelector(selector);
  }

  #field(name) {
    return this.#find(`[data-field=${name}]`);
  }
}
