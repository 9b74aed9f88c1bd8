// The Clone panel: a recording → what will be used of it → a voice to hear, save or discard.

import { request } from "./api.js";
import { choices, offer } from "./choices.js";
import { describe } from "./figures.js";
import { player } from "./player.js";
import { Recorder } from "./recorder.js";
import { showSaved } from "./saved.js";
import { Speech } from "./speech.js";
import { clock, number, t } from "./text.js";
import { Waveform } from "./waveform.js";

const LONGEST = 60; // seconds
const $ = (name) => document.getElementById(`clone-${name}`);

/** The server's words for a recording that cannot be used → ours, which say what to do. */
const REFUSALS = [
  [/silent/, "clone_silent"],
  [/only noise/, "clone_noise"],
  [/at least 1 s/, "clone_too_short"],
  [/decode|cannot be read|no audio|empty/, "clone_unreadable"],
];

const explain = (error) => {
  const found = REFUSALS.find(([words]) => words.test(error.message));
  return found ? t(found[1]) : `${error.words ?? error.message} ${error.advice ?? ""}`;
};

class ClonePanel {
  #recorder = new Recorder();
  #wave = new Waveform($("wave"));
  #audio = new Audio();
  #recording = null; // a Blob that passed the checks
  #draft = null; // a voice on the server that is not saved yet
  #speech = null;

  begin() {
    $("text").value = t("clone_sample");
    this.#offer();
    choices.addEventListener("change", () => this.#offer());
    $("file").addEventListener("change", () => this.#take($("file").files[0]));
    $("record").addEventListener("click", () => this.#record());
    this.#recorder.addEventListener("tick", () => this.#tick());
    $("original").addEventListener("click", () => this.#hearOriginal());
    $("hear").addEventListener("click", () => this.#hear());
    $("save").addEventListener("click", () => this.#save());
    $("discard").addEventListener("click", () => this.#discard("clone_discarded"));
    for (const name of ["name", "language", "style"]) {
      $(name).addEventListener("change", () => this.#discard());
    }
    addEventListener("pagehide", () => this.#discard());
    this.#listenForDrops();
  }

  #offer() {
    offer($("language"), "language", { own: false });
    offer($("style"), "style", { own: false });
    showSaved();
  }

  #listenForDrops() {
    const drop = $("drop");
    const over = (state) => (event) => {
      event.preventDefault();
      drop.classList.toggle("over", state);
    };
    drop.addEventListener("dragover", over(true));
    drop.addEventListener("dragleave", over(false));
    drop.addEventListener("drop", (event) => {
      over(false)(event);
      this.#take(event.dataTransfer.files[0]);
    });
  }

  async #record() {
    if (this.#recorder.recording) return this.#endRecording();
    try {
      await this.#recorder.start();
    } catch {
      return this.#say("clone_no_microphone", "failed");
    }
    player.stop();
    $("record").querySelector(".words").textContent = t("clone_record_stop");
    $("record").dataset.state = "recording";
    return this.#tick();
  }

  #tick() {
    $("line").textContent = t("clone_recording", { time: clock(this.#recorder.seconds) });
    if (this.#recorder.seconds >= LONGEST) this.#endRecording();
  }

  async #endRecording() {
    const recording = await this.#recorder.stop();
    $("record").querySelector(".words").textContent = t("clone_record");
    delete $("record").dataset.state;
    await this.#take(recording);
  }

  /** Have the server look at a recording; it says what it would use. */
  async #take(recording) {
    if (!recording) return;
    this.#discard();
    this.#recording = null;
    this.#say("clone_checking");
    const form = new FormData();
    form.set("audio_sample", recording, "recording");
    try {
      const answer = await request("v1/audio/voices/check", { form });
      this.#showUsed(await answer.json());
      this.#recording = recording;
      this.#audio.src = URL.createObjectURL(recording);
      $("line").textContent = "";
      $("line").dataset.state = "done";
    } catch (error) {
      this.#showUsed(null);
      $("line").textContent = explain(error);
      $("line").dataset.state = "failed";
    }
    $("original").disabled = !this.#recording;
    $("file").value = "";
  }

  #showUsed(used) {
    this.#wave.peaks = used?.peaks ?? null;
    this.#wave.draw();
    $("length").textContent = used ? `${number(used.seconds, 1)} s` : "–";
    $("level").textContent = used ? `${number(used.level)} dB` : "–";
    const warnings = (used?.warnings.length ? used.warnings : ["none"]).map((name) => {
      const line = document.createElement("span");
      line.className = "warning";
      line.dataset.kind = name;
      line.textContent = t(`warn_${name}`);
      return line;
    });
    $("warnings").replaceChildren(...(used ? warnings : ["–"]));
  }

  #hearOriginal() {
    player.stop();
    if (this.#audio.paused) this.#audio.play();
    else this.#audio.pause();
  }

  /** What is missing before a voice can be made, in words; empty: nothing. */
  #missing() {
    const missing = [];
    if (!this.#recording) missing.push(t("clone_need_recording"));
    if (!$("name").value.trim()) missing.push(t("clone_need_name"));
    if (!$("consent").checked) missing.push(t("clone_need_consent"));
    return missing.join(", ");
  }

  async #hear() {
    const what = this.#missing();
    if (what) return this.#state(t("clone_need", { what }), "failed");
    this.#audio.pause();
    const body = { model: "tontaube-v1", input: $("text").value || t("clone_sample") };
    const speech = (this.#speech = new Speech(body));
    const playing = player.play(speech.track); // now: sound must be opened by the click itself
    this.#state(t("clone_making"), "sending");
    $("hear").disabled = true;
    try {
      this.#draft ??= await this.#make();
      body.voice = this.#draft.id;
      speech.addEventListener("change", () => describe($("state"), speech));
      await Promise.all([playing, speech.run()]);
      if (speech.state === "done") this.#state(t("clone_made"), "done");
    } catch (error) {
      player.stop();
      this.#state(explain(error), "failed");
    } finally {
      $("hear").disabled = false;
      $("save").disabled = $("discard").disabled = !this.#draft;
    }
  }

  async #make() {
    const form = new FormData();
    form.set("name", $("name").value.trim());
    form.set("consent", t("clone_consent"));
    form.set("language", $("language").value);
    form.set("style", $("style").value);
    form.set("audio_sample", this.#recording, "recording");
    const answer = await request("v1/audio/voices", { form });
    return answer.json();
  }

  async #save() {
    const { name } = this.#draft;
    this.#draft = null;
    $("save").disabled = $("discard").disabled = true;
    $("name").value = "";
    $("consent").checked = false;
    await choices.load();
    this.#state(t("clone_saved", { name }), "done");
  }

  /** Have the server forget a voice that was not saved; `key`: what to say about it. */
  #discard(key = null) {
    const draft = this.#draft;
    this.#draft = null;
    this.#speech?.stop();
    $("save").disabled = $("discard").disabled = true;
    $("state").textContent = key ? t(key) : "";
    if (draft) request(`v1/audio/voices/${draft.id}`, { method: "DELETE", keepalive: true });
  }

  #say(key, state = "sending") {
    $("line").textContent = t(key);
    $("line").dataset.state = state;
  }

  #state(words, state) {
    $("state").textContent = words;
    $("state").dataset.state = state;
  }
}

/** Bring the panel to life. */
export function initClone() {
  new ClonePanel().begin();
}
