// The audio thread: a queue of samples, played in order. It rests when it runs dry before the end,
// and fades for a few milliseconds where sound begins or is cut, so that nothing clicks.

const FADE = 192; // samples
const REPORT = 1_024; // samples between two reports

class Fifo extends AudioWorkletProcessor {
  #queue = []; // Float32Arrays
  #offset = 0; // into the first of them
  #queued = 0;
  #tail = new Float32Array(0); // what fades out after a cut
  #heard = 0;
  #risen = 0; // samples since sound began, for fading in
  #ended = false;
  #resting = true; // until there is enough to begin
  #enough = 0;
  #take = 0; // which flush the samples belong to
  #unreported = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  #obey({ flush, push, end, enough }) {
    if (flush !== undefined) this.#flush(flush, enough);
    if (push) {
      this.#queue.push(push);
      this.#queued += push.length;
    }
    if (end) this.#ended = true;
  }

  #flush(take, enough) {
    const tail = this.#resting ? new Float32Array(0) : this.#read(FADE);
    this.#tail = tail.map((sample, i) => sample * (1 - i / FADE));
    this.#queue = [];
    this.#offset = this.#queued = this.#heard = this.#risen = 0;
    this.#ended = false;
    this.#resting = true;
    this.#enough = enough;
    this.#take = take;
  }

  #read(count) {
    const out = new Float32Array(Math.min(count, this.#queued));
    let filled = 0;
    while (filled < out.length) {
      const first = this.#queue[0];
      const part = first.subarray(this.#offset, this.#offset + out.length - filled);
      out.set(part, filled);
      filled += part.length;
      this.#offset += part.length;
      if (this.#offset === first.length) {
        this.#queue.shift();
        this.#offset = 0;
      }
    }
    this.#queued -= filled;
    return out;
  }

  process(_inputs, [[out]]) {
    if (this.#resting && (this.#queued > this.#enough || (this.#ended && this.#queued))) {
      this.#resting = false;
    }
    if (!this.#resting) {
      const part = this.#read(out.length);
      for (let i = 0; i < part.length; i++) {
        out[i] = part[i] * Math.min(1, this.#risen / FADE);
        this.#risen += 1;
      }
      this.#heard += part.length;
      if (part.length < out.length) {
        this.#resting = true;
        if (!this.#ended) this.port.postMessage({ dry: true, take: this.#take });
      }
    }
    for (let i = 0; i < out.length && i < this.#tail.length; i++) out[i] += this.#tail[i];
    this.#tail = this.#tail.subarray(Math.min(out.length, this.#tail.length));
    this.#report(out.length);
    return true;
  }

  #report(count) {
    this.#unreported += count;
    if (this.#unreported < REPORT) return;
    this.#unreported = 0;
    this.port.postMessage({
      take: this.#take,
      heard: this.#heard,
      queued: this.#queued,
      over: this.#ended && this.#queued === 0,
    });
  }
}

registerProcessor("tontaube-fifo", Fifo);
