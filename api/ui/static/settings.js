// The Speak panel's fields ↔ a request's body ↔ a link that can be shared.

const $ = (name) => document.getElementById(`speak-${name}`);

const WORDS = ["voice", "language", "style"];
const NUMBERS = [
  ...["temperature", "top_p", "top_k", "acoustic_temperature"],
  ...["seed", "initial_seconds"],
];
const LONGEST = 2_000; // characters of text in a link

/** What the fields ask for; what they leave to the server is left out. */
export function bodyOf() {
  const body = { model: "tontaube-v1", input: $("text").value };
  for (const name of WORDS) if ($(name).value) body[name] = $(name).value;
  const speed = Number($("speed").value);
  if (speed !== 1) body.speed = speed;
  for (const name of NUMBERS) {
    if ($(name).value !== "" && $(name).checkValidity()) body[name] = $(name).valueAsNumber;
  }
  if (!$("normalize").checked) body.normalize = false;
  return body;
}

/** Put a body into the fields. */
export function fillFrom(body) {
  $("text").value = body.input ?? "";
  for (const name of WORDS) {
    const known = [...$(name).options].some((option) => option.value === body[name]);
    if (known) $(name).value = body[name];
  }
  if (body.speed) $("speed").value = body.speed;
  for (const name of NUMBERS) $(name).value = body[name] ?? "";
  $("normalize").checked = String(body.normalize) !== "false";
  const folded = NUMBERS.every((name) => body[name] === undefined);
  document.getElementById("speak-more").open = !folded;
}

/** An address that brings these settings back. They stand behind the #, so no server logs them. */
export function link(body) {
  const { model: _, input, ...rest } = body;
  const values = new URLSearchParams(rest);
  if (input && input.length <= LONGEST) values.set("input", input);
  const place = new URL(location.href);
  place.hash = `speak?${values}`;
  return String(place);
}

/** The settings of the address, if it has any. */
export function readLink() {
  const [name, query] = location.hash.slice(1).split(/\?(.*)/s);
  if (name !== "speak" || !query) return null;
  return Object.fromEntries(new URLSearchParams(query));
}
