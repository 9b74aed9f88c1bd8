// The Speak panel: settings → one Speech, heard while it is made, followed in the text.

import { address, request } from "./api.js";
import { choices, label, offer } from "./choices.js";
import { curl, python } from "./code.js";
import { Follower } from "./follow.js";
import { bodyOf, fillFrom, link, readLink } from "./settings.js";
import { Speech, newSeed } from "./speech.js";
import { describe, figures } from "./figures.js";
import { player } from "./player.js";
import { copy, save, shortcut } from "./page.js";
import { clock, number, t } from "./text.js";
import { Waveform } from "./waveform.js";

const $ = (name) => document.getElementById(`speak-${name}`);

class SpeakPanel {
  #speech = null;
  #body = null; // of the speech that is shown
  #wave = new Waveform($("wave"), (seconds) => this.#seek(seconds));
  #follower = new Follower($("text"), document.querySelector("#panel-speak .backdrop"));

  begin(language) {
    this.#offer();
    choices.addEventListener("change", () => this.#offer());
    fillFrom(readLink() ?? this.#sample(language));
    this.#listen();
    this.#changed();
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
    $("play").addEventListener("click", () => this.#toggle());
    $("stop").addEventListener("click", () => this.#stop());
    $("wav").addEventListener("click", () => save(this.#speech.track.wav(), "tontaube.wav"));
    $("mp3").addEventListener("click", () => this.#saveMp3());
    $("link").addEventListener("click", () => copy(link(bodyOf()), $("link")));
    for (const name of ["state", "progress", "ended"]) {
      player.addEventListener(name, () => this.#heard());
    }
    shortcut(panel, (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey), () =>
      this.#start(),
    );
    shortcut(panel, (event) => event.key === "Escape", () => this.#stop());
  }

  #changed() {
    $("speed-value").textContent = `${number(Number($("speed").value), 2)}×`;
    const length = [...$("text").value].length;
    $("count").textContent = t("count", {
      length: number(length),
      most: number(choices.max_characters),
    });
    $("count").classList.toggle("wrong", length > choices.max_characters);
    this.#code(bodyOf());
    history.replaceState(null, "", link(bodyOf()));
    if (this.#playable) this.#heard();
  }

  #code(body) {
    const shown = body.seed === undefined ? { ...body, ...this.#seedOf(body) } : body;
    $("curl").textContent = curl(shown);
    $("python").textContent = python(shown);
  }

  /** The seed that the page drew for what is shown, if the settings are still those. */
  #seedOf(body) {
    const same = this.#body && JSON.stringify({ ...body, seed: 0 }) === JSON.stringify({ ...this.#body, seed: 0 });
    return same ? { seed: this.#body.seed } : {};
  }

  get #playable() {
    return this.#speech && JSON.stringify(this.#seedOf(bodyOf())) !== "{}";
  }

  /** Play: pause, go on, hear again, or speak anew if the settings have changed. */
  #toggle() {
    const mine = this.#speech && player.track === this.#speech.track;
    if (mine && (player.state === "playing" || player.state === "waiting")) {
      if (!this.#speech.over || player.state === "playing") return player.pause();
    }
    if (mine && player.state === "paused") return player.resume();
    const again = this.#playable && this.#speech.state === "done" && bodyOf().seed === undefined;
    if (again) return player.play(this.#speech.track, 0);
    return this.#start();
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
    this.#follower.clear();
    this.#follower.begin();
    player.play(speech.track);
    speech.run();
    this.#code(wanted);
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
    if (player.track && !mine) return this.#follower.clear();
    $("stop").disabled = !(this.#speech && !this.#speech.over) && !(mine && player.state !== "idle");
    if (!mine) return;
    this.#wave.position = player.position;
    this.#wave.draw();
    $("at").textContent = clock(player.position);
    this.#follower.show(this.#speech.marks, player.position);
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
      $("line").textContent = error.message;
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
