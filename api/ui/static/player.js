// One player for the whole page: plays a track, also one that still grows, from any position.

import { openSink } from "./sinks.js";

const AHEAD = 2; // seconds given to the audio thread in advance
const PIECE = 0.25; // seconds a push
const AFTER_DRY = 0.4; // seconds to gather before going on after running dry
const DEVICE = 4_000; // ms in which a browser finds its loudspeaker, if there is one

/**
 * States: idle, waiting (for audio), playing, paused. Fires "state" when it changes or another
 * track is taken, "progress" as sound is heard, "ended" at a track's end, "mute" when the browser
 * has nothing to be heard through.
 */
class Player extends EventTarget {
  #context = null;
  #sink = null;
  #take = 0;
  #base = 0; // sample of the track at which this take began
  #fed = 0; // sample up to which it was given to the sink
  #ended = false; // whether the sink was told that nothing follows
  #opening = null;
  #grown = () => this.#feed();

  track = null;
  state = "idle";
  heard = 0; // samples of this take that were rendered
  rendered = 0; // of all takes; tests look at it
  underruns = 0;

  /** Seconds of the track that were heard. */
  get position() {
    return this.track ? (this.#base + this.heard) / this.track.rate : 0;
  }

  /** Play `track` from `at` seconds. The first call must come from a click or a key. */
  async play(track, at = 0) {
    const opening = this.#open(track.rate);
    this.#release();
    this.track = track;
    track.addEventListener("change", this.#grown);
    this.#set("waiting");
    await opening;
    if (this.track === track) this.#start(at);
  }

  /** Go on with another track at the same position, or at its end. */
  switchTo(track) {
    return this.play(track, Math.min(this.position, Math.max(0, track.seconds - 0.05)));
  }

  seek(seconds) {
    if (!this.track || !this.#sink) return;
    this.#start(Math.max(0, Math.min(seconds, this.track.seconds)));
    if (this.state !== "paused") this.#set("waiting");
    this.dispatchEvent(new Event("progress"));
  }

  async pause() {
    if (this.state !== "playing" && this.state !== "waiting") return;
    this.#set("paused");
    await this.#context?.suspend();
  }

  async resume() {
    if (this.state !== "paused") return;
    this.#set("waiting");
    await this.#context.resume();
  }

  /** Silence, and no track. */
  stop() {
    this.#sink?.flush(++this.#take, 0);
    this.#release();
    this.#set("idle");
  }

  async #open(rate) {
    this.#context ??= new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
    const resumed = this.#context.resume();
    setTimeout(() => {
      if (this.#context.state === "suspended" && this.state !== "paused") {
        this.dispatchEvent(new Event("mute"));
      }
    }, DEVICE);
    this.#opening ??= openSink(this.#context, (report) => this.#hear(report));
    this.#sink = await this.#opening;
    await resumed;
  }

  #release() {
    this.track?.removeEventListener("change", this.#grown);
    this.track = null;
    this.#base = this.heard = 0;
  }

  #start(at) {
    this.#take += 1;
    this.#base = this.#fed = Math.round(at * this.track.rate);
    this.heard = 0;
    this.#ended = false;
    this.#sink.flush(this.#take, 0);
    this.#feed();
  }

  /** Keep the audio thread supplied; it holds little, so that seeking and stopping are instant. */
  #feed() {
    const { track } = this;
    if (!track || !this.#sink || this.#take === 0) return;
    const limit = this.#base + this.heard + AHEAD * track.rate;
    while (this.#fed < track.length && this.#fed < limit) {
      const piece = track.floats(this.#fed, this.#fed + PIECE * track.rate);
      this.#fed += piece.length;
      this.#sink.push(piece);
    }
    if (track.complete && this.#fed >= track.length && !this.#ended) {
      this.#ended = true;
      this.#sink.end();
    }
  }

  #hear({ take, heard, dry, over }) {
    if (take !== this.#take || !this.track) return; // news of what was flushed
    if (dry) {
      this.underruns += 1;
      this.#set("waiting");
      this.#refill();
      return;
    }
    const more = heard - this.heard;
    this.heard = heard;
    this.rendered += more;
    if (more > 0 && this.state === "waiting") this.#set("playing");
    this.#feed();
    if (more > 0) this.dispatchEvent(new Event("progress"));
    if (over && this.state !== "idle") {
      this.#set("idle");
      this.dispatchEvent(new Event("ended"));
    }
  }

  /** After running dry: begin a new take where the sound broke off, with something in reserve. */
  #refill() {
    this.#base = this.#fed;
    this.heard = 0;
    this.#take += 1;
    this.#sink.flush(this.#take, AFTER_DRY * this.track.rate);
    this.#ended = false;
    this.#feed();
  }

  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

export const player = new Player();
