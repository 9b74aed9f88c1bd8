// A request's body → the same request for a terminal and for a program.

import { address, apiKey } from "./api.js";

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A call of curl that saves an MP3. */
export function curl(body) {
  const key = apiKey.get() ? " \\\n  -H \"Authorization: Bearer $TONTAUBE_API_KEY\"" : "";
  const json = JSON.stringify({ ...body, response_format: "mp3" }, null, 2);
  return (
    `curl ${address("v1/audio/speech")} \\\n  -H "Content-Type: application/json"${key} \\\n` +
    `  -d ${quote(json)} \\\n  -o speech.mp3`
  );
}

const OPENAI = ["model", "input", "voice", "speed"];

/** A program with OpenAI's client; fields of ours travel in `extra_body`. */
export function python(body) {
  const own = Object.fromEntries(Object.entries(body).filter(([name]) => !OPENAI.includes(name)));
  const lines = OPENAI.filter((name) => name in body).map(
    (name) => `    ${name}=${literal(body[name])},`,
  );
  if (!("voice" in body)) lines.splice(2, 0, '    voice="alloy",');
  const extra = Object.entries(own).map(([name, value]) => `"${name}": ${literal(value)}`);
  const key = apiKey.get() ? 'os.environ["TONTAUBE_API_KEY"]' : '"none"';
  return [
    ...(apiKey.get() ? ["import os", ""] : []),
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${address("v1")}", api_key=${key})`,
    "with client.audio.speech.with_streaming_response.create(",
    ...lines,
    '    response_format="mp3",',
    ...(extra.length ? [`    extra_body={${extra.join(", ")}},`] : []),
    ") as answer:",
    '    answer.stream_to_file("speech.mp3")',
  ].join("\n");
}

function literal(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  return JSON.stringify(value);
}
