// Audio that grows while it is made: samples in one piece, peaks for drawing, a WAV for keeping.

const BLOCK = 480; // samples a peak stands for: 20 ms

/** 16-bit mono samples at `rate`. Fires "change" whenever it grows or is complete. */
export class Track extends EventTarget {
  #samples = new Int16Array(24_000);
  #peaks = [];

  constructor(rate = 24_000) {
    super();
    this.rate = rate;
    this.length = 0;
    this.complete = false;
  }

  get seconds() {
    return this.length / this.rate;
  }

  /** Append an Int16Array. */
  append(more) {
    const length = this.length + more.length;
    if (length > this.#samples.length) {
      const larger = new Int16Array(Math.max(length, 2 * this.#samples.length));
      larger.set(this.#samples.subarray(0, this.length));
      this.#samples = larger;
    }
    this.#samples.set(more, this.length);
    const first = Math.floor(this.length / BLOCK);
    this.length = length;
    for (let block = first; block * BLOCK < length; block++) this.#peaks[block] = this.#peak(block);
    this.dispatchEvent(new Event("change"));
  }

  /** No more will come. */
  finish() {
    this.complete = true;
    this.dispatchEvent(new Event("change"));
  }

  /** Samples from `begin` to `end` as Float32Array in -1..1. */
  floats(begin, end) {
    const part = this.#samples.subarray(begin, Math.min(end, this.length));
    return Float32Array.from(part, (sample) => sample / 32_768);
  }

  /** A copy of the samples so far. */
  samples() {
    return this.#samples.slice(0, this.length);
  }

  /** The loudest sample (0..1) of the stretch from `begin` to `end` seconds. */
  peak(begin, end) {
    const first = Math.floor((begin * this.rate) / BLOCK);
    const last = Math.max(first + 1, Math.ceil((end * this.rate) / BLOCK));
    let most = 0;
    for (let block = first; block < last; block++) most = Math.max(most, this.#peaks[block] ?? 0);
    return most;
  }

  /** A WAV file of what is there. */
  wav() {
    return wavOf([this.samples()], this.rate);
  }

  #peak(block) {
    let most = 0;
    const end = Math.min(this.length, (block + 1) * BLOCK);
    for (let i = block * BLOCK; i < end; i++) most = Math.max(most, Math.abs(this.#samples[i]));
    return most / 32_768;
  }
}

/** Int16Arrays, one after the other → a WAV file with true sizes. */
export function wavOf(parts, rate) {
  const bytes = 2 * parts.reduce((sum, part) => sum + part.length, 0);
  const header = new DataView(new ArrayBuffer(44));
  const text = (at, word) => [...word].forEach((c, i) => header.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, 36 + bytes, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true); // PCM
  header.setUint16(22, 1, true); // mono
  header.setUint32(24, rate, true);
  header.setUint32(28, 2 * rate, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, bytes, true);
  return new Blob([header, ...parts], { type: "audio/wav" });
}
