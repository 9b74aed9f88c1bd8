// A long text being read: one section after another is spoken ahead of the listener.

import { player } from "./player.js";
import { Speech, newSeed } from "./speech.js";
import { wavOf } from "./track.js";

const GAP = 0.35; // seconds of silence between sections of the file

/** Fires "change" when a section's speech has news, "heard" as the listener goes on. */
export class Reading extends EventTarget {
  #settings;
  #active = false; // whether sections are being spoken
  #run = null; // by whom: a later one takes over
  #seed = newSeed();
  #listen = new AbortController();

  /** `texts` of the sections; `settings`: the rest of their requests. */
  constructor(texts, settings) {
    super();
    this.#settings = settings;
    this.sections = texts.map((text) => ({ text, speech: null }));
    this.current = null; // index of the section that is heard
    const { signal } = this.#listen;
    player.addEventListener("ended", () => this.#ended(), { signal });
    player.addEventListener("progress", () => this.#tell("heard"), { signal });
    player.addEventListener("state", () => this.#tell("heard"), { signal });
  }

  get heard() {
    return this.current !== null && player.track === this.sections[this.current].speech?.track;
  }

  get busy() {
    return this.#active;
  }

  get done() {
    return this.sections.filter(({ speech }) => speech?.state === "done");
  }

  get seconds() {
    return this.sections.reduce((sum, { speech }) => sum + (speech?.track.seconds ?? 0), 0);
  }

  /** Hear section `index`; what is being spoken gives way if it is another one. */
  play(index) {
    const section = this.sections[index];
    if (!section.speech || section.speech.state === "failed") this.#interrupt();
    this.current = index;
    if (!this.#active && !this.#complete) this.#speakFrom(index);
    return player.play(section.speech.track, 0);
  }

  /** Speak nothing more; what is ready stays. */
  cancel() {
    this.#interrupt();
    if (this.heard && !this.sections[this.current].speech) player.stop();
    this.#tell("change");
  }

  /** Cancel, and stop listening: another reading takes over. */
  close() {
    this.cancel();
    if (this.heard) player.stop();
    this.#listen.abort();
  }

  /** All sections, one after the other. */
  wav() {
    const rate = this.sections[0].speech.track.rate;
    const gap = new Int16Array(Math.round(GAP * rate));
    const parts = this.sections.flatMap(({ speech }) => [speech.track.samples(), gap]);
    return wavOf(parts.slice(0, -1), rate);
  }

  get #complete() {
    return this.done.length === this.sections.length;
  }

  /** Free what is being spoken on the server; half a section is worth nothing. */
  #interrupt() {
    this.#active = false;
    for (const section of this.sections) {
      if (section.speech && !section.speech.over) {
        section.speech.stop();
        if (player.track === section.speech.track) player.stop();
        section.speech = null;
      }
    }
  }

  /** Speak the sections from `index` on, then those before it. Ends with a failure. */
  async #speakFrom(index) {
    this.#active = true;
    const order = [...this.sections.keys()];
    const queue = [...order.slice(index), ...order.slice(0, index)];
    const run = (this.#run = {});
    for (const next of queue) {
      const section = this.sections[next];
      if (section.speech?.state === "done") continue;
      const body = { ...this.#settings, input: section.text, seed: this.#seed };
      const speech = (section.speech = new Speech(body));
      speech.addEventListener("change", () => this.#tell("change"));
      await speech.run();
      if (run !== this.#run || !this.#active) return; // somebody else speaks now
      if (speech.state !== "done") break;
    }
    this.#active = false;
    this.#tell("change");
  }

  /** A section was heard to its end: go on with the next one, if it was begun. */
  #ended() {
    const next = this.heard ? this.sections[this.current + 1]?.speech : null;
    if (next && next.state !== "failed") this.play(this.current + 1);
    else this.#tell("heard");
  }

  #tell(kind) {
    this.dispatchEvent(new Event(kind));
  }
}
