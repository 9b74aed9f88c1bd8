// Requests to our own server: the key, errors in words, and streamed bodies piece by piece.

import { known, t } from "./text.js";

const ROOT = new URL("../../", import.meta.url);
const KEY = "tontaube-key";

/** The address of a path of the API. */
export const address = (path) => new URL(path.replace(/^\//, ""), ROOT);

/** What the server (or the line to it) refused; `words` can be shown. */
export class Refusal extends Error {
  constructor(message, { status = 0, code = null, param = null, retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
    this.retryAfter = retryAfter;
  }

  /** What is wrong: the server says it in English only, so others get our words for its code. */
  get words() {
    if (t("locale") === "en" && this.message) return this.message;
    const keys = [`error_${this.code}_${this.param}`, `error_${this.code}`];
    const key = keys.find(known);
    return key ? t(key) : this.message;
  }

  /** What to do about it, in the visitor's language. */
  get advice() {
    const key = `advice_${this.code}`;
    return known(key) ? t(key) : t(this.status === 0 ? "advice_offline" : "advice_other");
  }
}

/** The key that was asked for, while the browser's window lives. */
export const apiKey = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (key) => sessionStorage.setItem(KEY, key),
};

/** Asks the visitor for a key; main.js gives the dialog. Resolves to false if they leave it. */
let askForKey = async () => false;
export const useKeyDialog = (ask) => (askForKey = ask);

/**
 * Send a request. `json` or `form` make it a POST unless `method` says otherwise; `id` is its name
 * in the server's queue; `keepalive` lets it outlive the page. Throws Refusal, and AbortError when
 * `signal` fires.
 */
export async function request(path, options = {}) {
  const { json, form, method, signal, id, keepalive } = options;
  const headers = {};
  if (json !== undefined) headers["content-type"] = "application/json";
  if (id) headers["x-request-id"] = id;
  if (apiKey.get()) headers.authorization = `Bearer ${apiKey.get()}`;
  const body = json === undefined ? form : JSON.stringify(json);
  let answer;
  try {
    answer = await fetch(address(path), {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers,
      body,
      signal,
      keepalive,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(t("error_offline"));
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && (await askForKey())) {
    return request(path, options);
  }
  throw await refusal(answer);
}

async function refusal(answer) {
  let error = {};
  try {
    error = (await answer.json()).error ?? {};
  } catch {
    // Not our server's words: a proxy's page.
  }
  const retryAfter = Number(answer.headers.get("retry-after")) || null;
  const message = error.message ?? `${answer.status} ${answer.statusText}`;
  const { code, param } = error;
  return new Refusal(message, { status: answer.status, code, param, retryAfter });
}

/** Pieces of a body; a line that breaks is told as a Refusal. */
async function* pieces(answer) {
  const reader = answer.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(t("error_broken"));
  } finally {
    reader.releaseLock();
  }
}

/** Server-sent events of a body, parsed. Throws Refusal for an error event. */
export async function* events(answer) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces(answer)) {
    const blocks = (rest + decoder.decode(piece, { stream: true })).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      if (!block.startsWith("data: ")) continue;
      const event = JSON.parse(block.slice(6));
      if (event.error) throw new Refusal(event.error.message, { status: 200, ...event.error });
      yield event;
    }
  }
}

/** 16-bit samples of a PCM body; pieces may end in the middle of one. */
export async function* samples(answer) {
  let odd = new Uint8Array(0);
  for await (const piece of pieces(answer)) {
    const bytes = new Uint8Array(odd.length + piece.length);
    bytes.set(odd);
    bytes.set(piece, odd.length);
    const even = bytes.length & ~1;
    odd = bytes.slice(even);
    if (even) yield new Int16Array(bytes.buffer, 0, even / 2);
  }
}

/** Base64 of 16-bit samples → the samples. */
export function decodeSamples(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Int16Array(bytes.buffer, 0, bytes.length >> 1);
}
