// The microphone → a Blob, in whatever container the browser records.

/** Records until stopped. Fires "tick" every second. */
export class Recorder extends EventTarget {
  #media = null;
  #timer = null;
  #parts = [];

  get recording() {
    return this.#media !== null;
  }

  /** Seconds so far. */
  seconds = 0;

  /** Throws where there is no microphone, or none is allowed. */
  async start() {
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false },
    });
    this.#parts = [];
    this.seconds = 0;
    this.#media = new MediaRecorder(stream);
    this.#media.ondataavailable = ({ data }) => this.#parts.push(data);
    this.#media.start();
    this.#timer = setInterval(() => {
      this.seconds += 1;
      this.dispatchEvent(new Event("tick"));
    }, 1_000);
  }

  /** The recording; the microphone is let go. */
  stop() {
    const media = this.#media;
    this.#media = null;
    clearInterval(this.#timer);
    return new Promise((resolve) => {
      media.onstop = () => {
        for (const track of media.stream.getTracks()) track.stop();
        resolve(new Blob(this.#parts, { type: media.mimeType }));
      };
      media.stop();
    });
  }
}
