// JavaScript against a running server: `node say.mjs [address]`. fetch as it is in Node and in
// browsers, then the openai package.

import OpenAI from "openai";
import { VERSION } from "openai/version";

const address = process.argv[2] ?? "http://127.0.0.1:8000";
const input = "The kettle is on. The bread is still warm.";

/** Reads PCM as it comes; tells when the first and the last arrived, and their seconds. */
async function listen(answer, began) {
  let first = 0, bytes = 0;
  for await (const piece of answer.body) {
    first ||= performance.now() - began;
    bytes += piece.length;
  }
  if (bytes < 48_000) throw new Error(`only ${bytes} bytes of audio came`);
  const passed = performance.now() - began;
  return `first audio after ${(first / 1000).toFixed(2)} s, `
    + `${(bytes / 48_000).toFixed(2)} s in ${(passed / 1000).toFixed(2)} s`;
}

let began = performance.now();
const answer = await fetch(`${address}/v1/audio/speech`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ model: "tts-1", voice: "alloy", input, response_format: "pcm" }),
});
console.log(`fetch (node ${process.version}): ${await listen(answer, began)}`);

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "unused" });
began = performance.now();
const speech = await client.audio.speech.create({
  model: "gpt-4o-mini-tts", voice: "coral", input, response_format: "pcm",
});
console.log(`openai for JavaScript ${VERSION}: ${await listen(speech, began)}`);

const refused = await client.audio.speech.create({ model: "tts-1", voice: "nobody", input })
  .catch((error) => error);
console.log(`  an unknown voice: ${refused.constructor.name} ${refused.status}, ${refused.code}`);
