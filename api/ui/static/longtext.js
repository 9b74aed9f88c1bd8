// The Long text panel: a chapter → its sections, listed with their progress, heard from anywhere.

import { choices, offer } from "./choices.js";
import { describe, ordinal } from "./figures.js";
import { Words } from "./follow.js";
import { isGo, isStop, save, shortcut } from "./page.js";
import { player } from "./player.js";
import { Reading } from "./reading.js";
import { split } from "./sections.js";
import { clock, number, t } from "./text.js";

const $ = (name) => document.getElementById(`long-${name}`);

class LongTextPanel {
  #panel = document.getElementById("panel-longtext");
  #reading = null;
  #rows = []; // {item, words, bar, state, play}

  begin() {
    this.#offer();
    choices.addEventListener("change", () => this.#offer());
    $("speed").addEventListener("input", () => this.#speed());
    this.#speed();
    $("play").addEventListener("click", () => this.#toggle());
    $("cancel").addEventListener("click", () => this.#reading?.cancel());
    $("edit").addEventListener("click", () => this.#edit());
    $("file").addEventListener("change", () => this.#open($("file").files[0]));
    $("download").addEventListener("click", () => save(this.#reading.wav(), "tontaube.wav"));
    for (const name of ["voice", "language", "style", "speed"]) {
      $(name).addEventListener("change", () => this.#reading && this.#edit());
    }
    shortcut(this.#panel, isStop, () => this.#reading?.cancel());
    shortcut(this.#panel, isGo, () => this.#toggle());
  }

  #offer() {
    for (const name of ["voice", "language", "style"]) offer($(name), name);
  }

  #speed() {
    $("speed-value").textContent = `${number(Number($("speed").value), 2)}×`;
  }

  async #open(file) {
    if (file) $("text").value = await file.text();
    $("file").value = "";
  }

  #toggle() {
    const reading = this.#reading;
    if (!reading) return this.#start();
    if (reading.heard && player.state === "paused") return player.resume();
    if (reading.heard && player.state !== "idle") return player.pause();
    return reading.play(reading.current ?? 0);
  }

  #start() {
    const texts = split($("text").value);
    if (!texts.length) {
      $("line").textContent = t("long_empty");
      return undefined;
    }
    const settings = { model: "tontaube-v1", speed: Number($("speed").value) };
    for (const name of ["voice", "language", "style"]) {
      if ($(name).value) settings[name] = $(name).value;
    }
    const reading = (this.#reading = new Reading(texts, settings));
    reading.addEventListener("change", () => this.#show());
    reading.addEventListener("heard", () => this.#heard());
    this.#rows = texts.map((text, index) => row(text, index, () => reading.play(index)));
    $("sections").replaceChildren(...this.#rows.map(({ item }) => item));
    $("write").hidden = true;
    $("read").hidden = false;
    return reading.play(0);
  }

  /** Back to writing; what was spoken is let go. */
  #edit() {
    this.#reading?.close();
    this.#reading = null;
    $("write").hidden = false;
    $("read").hidden = true;
    $("line").textContent = "";
    this.#heard();
  }

  /** How far the sections are. */
  #show() {
    const reading = this.#reading;
    if (!reading) return;
    reading.sections.forEach(({ speech }, index) => {
      const { item, bar, state } = this.#rows[index];
      item.dataset.state = speech?.state ?? "waiting";
      bar.style.setProperty("--share", share(speech));
      const place = speech?.position ? ordinal(speech.position) : "";
      const words = t(`section_${speech?.state ?? "waiting"}`, { place });
      state.textContent = speech?.track.length ? `${words}, ${clock(speech.track.seconds)}` : words;
    });
    const failed = reading.sections.find(({ speech }) => speech?.state === "failed");
    if (failed) describe($("line"), failed.speech);
    else {
      const values = {
        done: reading.done.length,
        all: reading.sections.length,
        time: clock(reading.seconds),
      };
      $("line").textContent = t("long_summary", values);
    }
    $("download").disabled = reading.done.length < reading.sections.length;
    this.#heard();
  }

  /** Where the listener is. */
  #heard() {
    const reading = this.#reading;
    const sounding = Boolean(reading?.heard) && ["playing", "waiting"].includes(player.state);
    const resting = Boolean(reading?.heard) && player.state === "paused";
    const key = sounding ? "pause" : resting ? "resume" : "long_play";
    const button = $("play");
    button.dataset.state = sounding ? "pause" : "play";
    if (button.textContent.trim() !== t(key)) button.querySelector(".words").textContent = t(key);
    $("cancel").disabled = !reading?.busy;
    if (!reading) return;
    this.#rows.forEach(({ item, words }, index) => {
      const here = reading.heard && index === reading.current;
      if (here === item.classList.contains("here")) return;
      item.classList.toggle("here", here);
      if (!here) words.clear(reading.sections[index].text);
      else item.scrollIntoView({ block: "nearest", behavior: "smooth" });
    });
    if (!reading.heard) return;
    const { speech } = reading.sections[reading.current];
    this.#rows[reading.current].words.show(speech.marks, player.position);
  }
}

/** How much of a section is spoken, 0..1. */
function share(speech) {
  if (speech?.state === "done") return 1;
  const last = speech?.marks.at(-1);
  return last ? last.textEnd / [...speech.body.input].length : 0;
}

function row(whole, index, play) {
  const template = document.getElementById("section-template");
  const item = template.content.firstElementChild.cloneNode(true);
  const words = new Words(item.querySelector(".words"));
  words.begin(whole);
  words.clear(whole);
  const button = item.querySelector("button");
  button.addEventListener("click", play);
  button.setAttribute("aria-label", t("long_jump", { n: index + 1 }));
  return { item, words, bar: item.querySelector(".bar"), state: item.querySelector(".state") };
}

/** Bring the panel to life. */
export function initLongText() {
  new LongTextPanel().begin();
}
