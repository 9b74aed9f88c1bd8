// The Speak panel: settings → one Speech, heard while it is made, followed in the text.

import { request } from "./api.js";
import { choices, offer } from "./choices.js";
import { curl, python } from "./code.js";
import { Follower } from "./follow.js";
import { describe, figures } from "./figures.js";
import { copy, isGo, isStop, save, shortcut } from "./page.js";
import { player } from "./player.js";
import { bodyOf, fillFrom, link, readLink } from "./settings.js";
import { Speech, newSeed } from "./speech.js";
import { clock, number, t } from "./text.js";
import { Waveform } from "./waveform.js";

const $ = (name) => document.getElementById(`speak-${name}`);
const REST = 300; // ms without a change until the address is written anew

/** Whether a request was made with these settings; a seed that is left open may have been any. */
const made = (body, wanted) =>
  JSON.stringify({ ...wanted, seed: wanted.seed ?? body.seed }) === JSON.stringify(body);

class SpeakPanel {
  #speech = null;
  #body = null; // of the speech that is shown
  #timer = null;
  #wave = new Waveform($("wave"), (seconds) => this.#seek(seconds));
  #follower = new Follower($("text"), document.querySelector("#panel-speak .backdrop"));

  begin(language) {
    this.#offer();
    choices.addEventListener("change", () => this.#offer());
    fillFrom(readLink() ?? this.#sample(language));
    this.#listen();
    this.#changed();
    addEventListener("hashchange", () => {
      const body = readLink();
      if (body) fillFrom(body);
      this.#changed();
    });
    this.#show();
  }

  #offer() {
    offer($("voice"), "voice");
    offer($("language"), "language");
    offer($("style"), "style");
    for (const [name, value] of Object.entries(choices.defaults)) $(name).placeholder = value;
  }

  /** Something to say in the visitor's language, if the model speaks it. */
  #sample(code) {
    const found = Object.entries(choices.languages).find(([, iso]) => iso === code);
    const voice = choices.voice(choices.default_voice);
    const language = found && found[0] !== voice.language ? found[0] : "";
    return { input: t(found ? "sample" : "sample_plain"), language };
  }

  #listen() {
    const panel = document.getElementById("panel-speak");
    panel.addEventListener("input", () => this.#changed());
    panel.addEventListener("shown", () => this.#remember());
    $("play").addEventListener("click", () => this.#toggle());
    $("stop").addEventListener("click", () => this.#stop());
    $("again").addEventListener("click", () => this.#start());
    $("wav").addEventListener("click", () => save(this.#speech.track.wav(), "tontaube.wav"));
    $("mp3").addEventListener("click", () => this.#saveMp3());
    $("link").addEventListener("click", () => copy(link(bodyOf()), $("link")));
    for (const name of ["state", "progress", "ended"]) {
      player.addEventListener(name, () => this.#heard());
    }
    shortcut(panel, isGo, () => this.#start());
    shortcut(panel, isStop, () => this.#stop());
  }

  #changed() {
    $("speed-value").textContent = `${number(Number($("speed").value), 2)}×`;
    const length = [...$("text").value].length;
    $("count").textContent = t("count", {
      length: number(length),
      most: number(choices.max_characters),
    });
    $("count").classList.toggle("wrong", length > choices.max_characters);
    this.#code();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#remember(), REST);
  }

  /** Keep the settings in the address; browsers allow that only now and then. */
  #remember() {
    if (!document.getElementById("panel-speak").hidden) {
      history.replaceState(null, "", link(bodyOf()));
    }
  }

  /** The request as code; with the seed of what was spoken, if the settings are still those. */
  #code() {
    const wanted = bodyOf();
    const shown = this.#body && made(this.#body, wanted) ? this.#body : wanted;
    $("curl").textContent = curl(shown);
    $("python").textContent = python(shown);
  }

  /** Play: pause, go on, hear again, or speak anew if the settings have changed. */
  #toggle() {
    const mine = this.#speech && player.track === this.#speech.track;
    if (mine && (player.state === "playing" || player.state === "waiting")) {
      if (!this.#speech.over || player.state === "playing") return player.pause();
    }
    if (mine && player.state === "paused") return player.resume();
    const there = this.#speech?.state === "done" && made(this.#body, bodyOf());
    return there ? player.play(this.#speech.track, 0) : this.#start();
  }

  #start() {
    this.#speech?.stop();
    const wanted = bodyOf();
    if (!wanted.input.trim()) {
      $("line").textContent = t("nothing_to_say");
      $("text").focus();
      return;
    }
    this.#body = { ...wanted, seed: wanted.seed ?? newSeed() };
    const speech = (this.#speech = new Speech(this.#body));
    speech.addEventListener("change", () => speech === this.#speech && this.#show());
    this.#wave.show(speech.track);
    this.#follower.begin();
    player.play(speech.track);
    speech.run();
    this.#code();
  }

  #stop() {
    this.#speech?.stop();
    if (player.track === this.#speech?.track) player.stop();
    this.#show();
  }

  #seek(seconds) {
    if (player.track === this.#speech.track) player.seek(seconds);
    else player.play(this.#speech.track, seconds);
  }

  /** What the server made of it so far. */
  #show() {
    const speech = this.#speech;
    const busy = Boolean(speech) && !speech.over;
    $("stop").disabled = !busy && player.state === "idle";
    $("wav").disabled = !speech?.track.length || busy;
    $("mp3").disabled = speech?.state !== "done";
    $("again").disabled = !speech || busy;
    describe($("line"), speech);
    figures($("figures"), speech);
    if (speech) {
      const spoken = speech.marks.at(-1)?.textEnd;
      const all = [...this.#body.input].length;
      this.#wave.seconds = spoken ? (speech.track.seconds * all) / spoken : 0;
      $("of").textContent = clock(speech.track.seconds);
    }
    this.#heard();
  }

  /** Where the listener is. */
  #heard() {
    const mine = this.#speech && player.track === this.#speech.track;
    const sounding = mine && (player.state === "playing" || player.state === "waiting");
    const state = sounding ? "pause" : mine && player.state === "paused" ? "resume" : "play";
    $("play").dataset.state = state;
    const words = $("play").querySelector(".words");
    if (words.textContent !== t(state)) words.textContent = t(state);
    const speaking = Boolean(this.#speech) && !this.#speech.over;
    $("stop").disabled = !speaking && !(mine && player.state !== "idle");
    if (!mine || player.state === "idle") this.#follower.rest();
    if (!mine) return;
    this.#wave.position = player.position;
    this.#wave.draw();
    $("at").textContent = clock(player.position);
    if (player.state !== "idle") this.#follower.show(this.#speech.marks, player.position);
  }

  /** The same request as MP3: it has a seed, so that the server makes (or remembers) the same. */
  async #saveMp3() {
    const button = $("mp3");
    button.disabled = true;
    button.dataset.busy = "";
    try {
      const json = { ...this.#body, response_format: "mp3", stream: false };
      const answer = await request("v1/audio/speech", { json });
      save(await answer.blob(), "tontaube.mp3");
    } catch (error) {
      $("line").textContent = error.words ?? error.message;
    } finally {
      delete button.dataset.busy;
      button.disabled = false;
    }
  }
}

/** Bring the panel to life. */
export function initSpeak(language) {
  new SpeakPanel().begin(language);
}
