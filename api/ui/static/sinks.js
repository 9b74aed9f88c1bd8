// Where samples go to be heard: the audio thread's queue, or, where a browser offers none (pages
// that are neither https nor localhost), buffers laid end to end on the audio clock.

/** The sink this browser allows. `onreport({take, heard, queued, over, dry})` says what happens. */
export async function openSink(context, onreport) {
  if (!context.audioWorklet) return new ScheduledSink(context, onreport);
  await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
  return new WorkletSink(context, onreport);
}

class WorkletSink {
  constructor(context, onreport) {
    this.node = new AudioWorkletNode(context, "tontaube-fifo", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    this.node.port.onmessage = ({ data }) => onreport(data);
    this.node.connect(context.destination);
  }

  /** Forget everything; what comes next is take number `take`, heard once `enough` is there. */
  flush(take, enough) {
    this.node.port.postMessage({ flush: take, enough });
  }

  push(floats) {
    this.node.port.postMessage({ push: floats }, [floats.buffer]);
  }

  end() {
    this.node.port.postMessage({ end: true });
  }
}

class ScheduledSink {
  #sources = new Set();
  #take = 0;
  #next = 0; // when the next buffer begins, on the context's clock
  #pushed = 0;
  #ended = false;

  constructor(context, onreport) {
    this.context = context;
    setInterval(() => onreport(this.#state()), 60);
  }

  flush(take) {
    for (const source of this.#sources) source.stop();
    this.#sources.clear();
    this.#take = take;
    this.#next = this.#pushed = 0;
    this.#ended = false;
  }

  push(floats) {
    const buffer = this.context.createBuffer(1, floats.length, this.context.sampleRate);
    buffer.copyToChannel(floats, 0);
    const source = new AudioBufferSourceNode(this.context, { buffer });
    source.connect(this.context.destination);
    source.onended = () => this.#sources.delete(source);
    this.#sources.add(source);
    this.#next = Math.max(this.#next, this.context.currentTime + 0.05);
    source.start(this.#next);
    this.#next += buffer.duration;
    this.#pushed += floats.length;
  }

  end() {
    this.#ended = true;
  }

  #state() {
    const left = Math.max(0, this.#next - this.context.currentTime) * this.context.sampleRate;
    const queued = Math.min(this.#pushed, Math.round(left));
    const over = this.#ended && queued === 0;
    return { take: this.#take, heard: this.#pushed - queued, queued, over };
  }
}
