// One request to speak: its place in line, its audio as it is made, where its words are, figures.

import { Refusal, decodeSamples, events, request, samples } from "./api.js";
import { Track } from "./track.js";

const LOOK = 800; // ms between two looks at the line
const RETRIES = 5; // of a request there was no room for

/** A seed of one's own makes a request repeatable, and the server may keep its answer. */
export const newSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

/**
 * States: idle, sending, line (waiting for its turn), full (no room, tried again soon), speaking,
 * done, stopped, failed. Fires "change".
 */
export class Speech extends EventTarget {
  #abort = new AbortController();
  #sent = 0;
  #looking = false;

  constructor(body) {
    super();
    this.body = body;
    this.track = new Track();
    this.marks = []; // {start, end: seconds; segment, textEnd} in order
    this.segments = 0; // how many there will be
    this.state = "idle";
    this.position = null; // in line
    this.ttfa = null; // ms
    this.took = null; // ms
    this.error = null;
  }

  /** Milliseconds of work per millisecond of audio. */
  get rtf() {
    return this.took && this.track.length ? this.took / 1000 / this.track.seconds : null;
  }

  get over() {
    return ["done", "stopped", "failed"].includes(this.state);
  }

  /** Free it on the server; what was heard stays. */
  stop() {
    if (this.over) return;
    this.#set("stopped");
    this.#abort.abort();
    this.track.finish();
  }

  /** Speak, to the end or to a failure; never throws. `captions`: learn where the words are. */
  async run({ captions = true } = {}) {
    try {
      const answer = await this.#send(captions);
      await (captions ? this.#readEvents(answer) : this.#readSamples(answer));
      this.#set("done");
    } catch (error) {
      if (this.over) return;
      this.error = error instanceof Refusal ? error : new Refusal(String(error));
      this.#set("failed");
    } finally {
      this.track.finish();
    }
  }

  async #send(captions) {
    const { signal } = this.#abort;
    const format = { response_format: "pcm", stream_format: captions ? "sse" : "audio" };
    for (let attempt = 0; ; attempt++) {
      const id = `page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
      this.#sent = performance.now();
      this.#set("sending");
      const watch = setInterval(() => this.#look(id), LOOK);
      try {
        return await request("v1/audio/speech", { json: { ...this.body, ...format }, signal, id });
      } catch (error) {
        if (error.code !== "server_busy" || attempt === RETRIES) throw error;
        this.#set("full");
        await pause(1000 * (error.retryAfter ?? 2), signal);
      } finally {
        clearInterval(watch);
        this.position = null;
      }
    }
  }

  async #look(id) {
    if (this.#looking) return; // browsers have six lines to a server: they may all be taken
    this.#looking = true;
    try {
      const answer = await request(`v1/status?request=${id}`);
      const { position } = await answer.json();
      if (this.state !== "sending" && this.state !== "line") return;
      this.position = position;
      this.#set(position ? "line" : "sending");
    } catch {
      // The request itself will tell.
    } finally {
      this.#looking = false;
    }
  }

  async #readEvents(answer) {
    for await (const event of events(answer)) {
      if (event.type !== "speech.audio.delta") continue;
      if (event.segment) {
        const { start, end, segment } = event;
        this.marks.push({ start, end, segment, textEnd: event.text_end });
        this.segments = event.segments;
      }
      this.#take(decodeSamples(event.audio));
    }
  }

  async #readSamples(answer) {
    for await (const piece of samples(answer)) this.#take(piece);
  }

  #take(piece) {
    const now = performance.now();
    this.ttfa ??= now - this.#sent;
    this.took = now - this.#sent;
    this.track.append(piece);
    this.#set("speaking");
  }

  #set(state) {
    if (this.over) return;
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
