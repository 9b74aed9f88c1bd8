// A canvas that shows a track: what was heard in the accent colour; click or arrow keys to move.

import { clock, t } from "./text.js";

const BAR = 3; // CSS pixels, gap included
const STEP = 2; // seconds an arrow key moves
const CURVE = 0.65; // quiet speech is to be seen, too

export class Waveform {
  #canvas;
  #scheduled = false;
  #redraw = () => this.draw();

  /** `onseek(seconds)` is called when the listener wants to be somewhere else. */
  constructor(canvas, onseek = null) {
    this.#canvas = canvas;
    this.track = null;
    this.peaks = null; // drawn instead of a track's, 0..1 each
    this.position = 0;
    this.seconds = 0; // a guess at the whole length, while the track grows
    new ResizeObserver(this.#redraw).observe(canvas);
    if (onseek) this.#listen(onseek);
  }

  /** Show another track (or none). */
  show(track) {
    this.track?.removeEventListener("change", this.#redraw);
    this.track = track;
    this.position = this.seconds = 0;
    track?.addEventListener("change", this.#redraw);
    this.draw();
  }

  /** Draw with the next frame. */
  draw() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#paint();
    });
  }

  get #length() {
    return Math.max(this.track?.seconds ?? 0, this.track?.complete ? 0 : this.seconds);
  }

  #paint() {
    const canvas = this.#canvas;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width) return;
    const scale = devicePixelRatio;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const brush = canvas.getContext("2d");
    brush.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const colours = {
      heard: style.getPropertyValue("--accent"),
      ahead: style.getPropertyValue("--wave"),
      empty: style.getPropertyValue("--line"),
    };
    const bars = Math.floor(width / BAR);
    for (let bar = 0; bar < bars; bar++) {
      const peak = this.#peak(bar, bars) ** CURVE;
      const size = Math.max(1.5, peak * (height - 2));
      brush.fillStyle = this.#colour(bar, bars, colours);
      brush.fillRect(bar * BAR, (height - size) / 2, BAR - 1, size);
    }
    this.#describe();
  }

  #peak(bar, bars) {
    if (this.peaks) return this.peaks[Math.floor((bar / bars) * this.peaks.length)] ?? 0;
    const length = this.#length;
    if (!length) return 0;
    return this.track.peak((bar / bars) * length, ((bar + 1) / bars) * length);
  }

  #colour(bar, bars, colours) {
    if (this.peaks) return colours.ahead;
    const at = (bar / bars) * this.#length;
    if (!this.#length || at >= this.track.seconds) return colours.empty;
    return at < this.position ? colours.heard : colours.ahead;
  }

  #describe() {
    if (this.#canvas.getAttribute("role") !== "slider") return;
    const length = this.track?.seconds ?? 0;
    this.#canvas.setAttribute("aria-valuemin", "0");
    this.#canvas.setAttribute("aria-valuemax", length.toFixed(1));
    this.#canvas.setAttribute("aria-valuenow", this.position.toFixed(1));
    const values = { at: clock(this.position), of: clock(length) };
    this.#canvas.setAttribute("aria-valuetext", t("wave_value", values));
  }

  #listen(onseek) {
    const canvas = this.#canvas;
    canvas.addEventListener("click", (event) => {
      if (this.track?.length) onseek((event.offsetX / canvas.clientWidth) * this.#length);
    });
    canvas.addEventListener("keydown", (event) => {
      const moves = {
        ArrowLeft: this.position - STEP,
        ArrowRight: this.position + STEP,
        Home: 0,
        End: this.track?.seconds ?? 0,
      };
      if (!(event.key in moves) || !this.track?.length) return;
      event.preventDefault();
      onseek(Math.max(0, Math.min(moves[event.key], this.track.seconds)));
    });
  }
}
