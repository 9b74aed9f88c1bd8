// The Compare panel: up to six versions of one text, spoken at once, heard in turns, voted for.

import { choices } from "./choices.js";
import { isGo, isStop, shortcut, writing } from "./page.js";
import { player } from "./player.js";
import { newSeed } from "./speech.js";
import { t } from "./text.js";
import { Version } from "./version.js";
import { Votes } from "./votes.js";

const MOST = 6;
const LETTERS = "ABCDEF";
const TEMPERATURES = [0.2, 0.5, 0.8, 1.1];
const $ = (name) => document.getElementById(`compare-${name}`);

class ComparePanel {
  #panel = document.getElementById("panel-compare");
  #versions = [];
  #votes = new Votes();
  #covered = false;
  #best = null;

  begin() {
    $("text").value = t("sample");
    this.#fill(choices.styles.length > 1 ? "style" : "voice");
    choices.addEventListener("change", () => this.#versions.forEach((each) => each.offer()));
    for (const button of this.#panel.querySelectorAll("[data-fill]")) {
      button.addEventListener("click", () => this.#fill(button.dataset.fill));
    }
    $("text").addEventListener("input", () => this.#versions.forEach((each) => each.forget()));
    $("add").addEventListener("click", () => this.#add(this.#versions.at(-1)?.settings ?? {}));
    $("go").addEventListener("click", () => this.#go());
    $("stop").addEventListener("click", () => this.#stop());
    $("blind").addEventListener("change", () => this.#uncover());
    player.addEventListener("state", () => this.#show());
    player.addEventListener("progress", () => this.#heard());
    this.#keys();
  }

  #keys() {
    const free = (event) => !writing(event) && !event.ctrlKey && !event.metaKey && !event.altKey;
    const index = ({ key }) => {
      const place = key.length === 1 ? LETTERS.indexOf(key.toUpperCase()) : -1;
      return place >= 0 ? place : Number.parseInt(key, 10) - 1;
    };
    shortcut(
      this.#panel,
      (event) => free(event) && this.#versions[index(event)]?.playable,
      (event) => this.#play(this.#versions[index(event)]),
    );
    const elsewhere = (event) => !event.target.closest("button, label"); // Space presses those
    shortcut(
      this.#panel,
      (event) => event.key === " " && free(event) && elsewhere(event) && this.#sounding,
      () => (player.state === "paused" ? player.resume() : player.pause()),
    );
    shortcut(this.#panel, isStop, () => this.#stop());
    shortcut(this.#panel, isGo, () => this.#go());
  }

  /** Versions that differ in one thing; the first one gives the rest. */
  #fill(kind) {
    const values = {
      style: () => choices.styles,
      voice: () => choices.voices.map((voice) => voice.id),
      language: () => Object.keys(choices.languages),
      temperature: () => TEMPERATURES,
    }[kind]();
    const base = this.#versions[0]?.settings ?? {};
    this.#clear();
    for (const value of values.slice(0, MOST)) this.#add({ ...base, [kind]: value });
  }

  #clear() {
    for (const version of this.#versions) {
      version.speech?.stop();
      version.element.remove();
    }
    this.#versions = [];
  }

  #add(settings) {
    if (this.#versions.length === MOST) return;
    const version = new Version(settings, {
      play: (which) => this.#play(which, true),
      seek: (which, seconds) => player.play(which.speech.track, seconds),
      vote: (which) => this.#vote(which),
      remove: (which) => this.#remove(which),
      change: () => this.#show(),
    });
    this.#versions.push(version);
    $("versions").append(version.element);
    this.#show();
  }

  #remove(version) {
    version.speech?.stop();
    version.element.remove();
    this.#versions = this.#versions.filter((other) => other !== version);
    this.#show();
  }

  /** Speak all at once; the server's queue decides what "at once" is. */
  #go() {
    const input = $("text").value;
    if (!input.trim()) {
      $("line").textContent = t("nothing_to_say");
      return;
    }
    this.#stop();
    this.#best = null;
    this.#covered = $("blind").checked;
    if (this.#covered) this.#shuffle();
    const seed = newSeed(); // the same for all, so that only the settings differ
    for (const version of this.#versions) version.speak(input, seed);
    this.#show();
  }

  #shuffle() {
    const { length } = this.#versions;
    for (let last = length - 1; last > 0; last--) {
      const other = crypto.getRandomValues(new Uint32Array(1))[0] % (last + 1);
      [this.#versions[last], this.#versions[other]] = [this.#versions[other], this.#versions[last]];
    }
    $("versions").append(...this.#versions.map((version) => version.element));
  }

  #stop() {
    if (this.#sounding) player.stop();
    for (const version of this.#versions) version.speech?.stop();
    this.#show();
  }

  get #sounding() {
    return this.#versions.find(({ speech }) => speech && speech.track === player.track) ?? null;
  }

  /** Hear a version: from the beginning, or where the one before it was; `pausing` by a click. */
  #play(version, pausing = false) {
    const sounding = this.#sounding;
    const active = sounding && player.state !== "idle";
    if (sounding === version && active && pausing) {
      return player.state === "paused" ? player.resume() : player.pause();
    }
    if (sounding === version && active) return undefined;
    const { track } = version.speech;
    return active ? player.switchTo(track) : player.play(track, 0);
  }

  #vote(version) {
    const facts = (each) => ({ words: each.words, ...each.settings });
    this.#votes.add({
      blind: this.#covered,
      best: facts(version),
      others: this.#versions.filter((other) => other !== version && other.playable).map(facts),
      text: $("text").value,
    });
    this.#best = version;
    this.#uncover();
    $("line").textContent = t("voted", { what: version.words });
  }

  #uncover() {
    this.#covered = this.#covered && $("blind").checked && !this.#best;
    this.#show();
  }

  #show() {
    const sounding = this.#sounding;
    const playing = player.state === "playing" || player.state === "waiting";
    const ready = this.#versions.filter(({ speech }) => speech?.state === "done");
    const busy = this.#versions.some(({ speech }) => speech && !speech.over);
    for (const [index, version] of this.#versions.entries()) {
      version.place(LETTERS[index], this.#versions.length > 1);
      version.show({
        state: version === sounding && playing ? "pause" : "play",
        covered: this.#covered,
        voting: version.playable && !busy && ready.length > 1 && !this.#best,
        best: version === this.#best,
      });
    }
    $("add").disabled = this.#versions.length === MOST;
    $("stop").disabled = !busy && !(sounding && player.state !== "idle");
    if (!this.#best) $("line").textContent = this.#words(ready.length, busy);
  }

  #words(n, busy) {
    const failed = this.#versions.some(({ speech }) => speech?.state === "failed");
    if (!busy && n === 0 && !failed) return t("compare_hint");
    const values = { n, m: this.#versions.length };
    return t(busy ? "compare_speaking" : failed ? "compare_failed" : "compare_ready", values);
  }

  #heard() {
    for (const version of this.#versions) {
      if (!version.speech) continue;
      if (version.speech.track === player.track) version.wave.position = player.position;
      else version.wave.position = 0;
      version.wave.draw();
    }
  }
}

/** Bring the panel to life. */
export function initCompare() {
  new ComparePanel().begin();
}
