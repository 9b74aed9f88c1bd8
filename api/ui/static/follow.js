// Words that light up as they are heard, in any element or behind a text field.

/** Marks of a Speech count characters as Python does; JavaScript counts UTF-16 units. */
function unitsOf(text) {
  const places = [0];
  let at = 0;
  for (const character of text) places.push((at += character.length));
  return places;
}

/** How far the speech is at `seconds`: {start, spoken, end} in characters, or null. */
function placeOf(marks, seconds) {
  const index = marks.findIndex(({ end }) => seconds < end);
  const mark = index < 0 ? marks.at(-1) : marks[index];
  if (!mark) return null;
  const previous = marks[marks.indexOf(mark) - 1];
  const from = Math.max(mark.segment.start, previous?.textEnd ?? 0);
  const share = Math.max(0, Math.min(1, (seconds - mark.start) / (mark.end - mark.start || 1)));
  const spoken = Math.round(from + share * (mark.textEnd - from));
  return { start: mark.segment.start, spoken, end: mark.segment.end };
}

/** An element that shows a text with its words lit up. */
export class Words {
  #element;
  #text = "";
  #places = [0];
  #shown = "";

  constructor(element) {
    this.#element = element;
  }

  /** From now on marks are those of `text`. */
  begin(text) {
    this.#text = text;
    this.#places = unitsOf(text);
    this.clear();
  }

  /** Nothing is lit; `text` is what then stands there. */
  clear(text = "") {
    this.#shown = "";
    this.#element.replaceChildren(text);
  }

  /** Light up what is heard at `seconds`; gives the element of what comes next if it has moved. */
  show(marks, seconds) {
    const place = this.#text ? placeOf(marks, seconds) : null;
    const key = place && Object.values(place).join(" ");
    if (!place || key === this.#shown) return null;
    this.#shown = key;
    const unit = (at) => this.#places[Math.min(at, this.#places.length - 1)];
    const [a, b, c] = [unit(place.start), unit(place.spoken), unit(place.end)];
    const heard = document.createElement("mark");
    heard.className = "heard";
    heard.textContent = this.#text.slice(a, b);
    const coming = document.createElement("mark");
    coming.textContent = this.#text.slice(b, c);
    const rest = [this.#text.slice(0, a), heard, coming, this.#text.slice(c)];
    this.#element.replaceChildren(...rest);
    return coming;
  }
}

/** A text field whose words light up: a copy of its text lies behind it. */
export class Follower {
  #field;
  #backdrop;
  #words;

  constructor(field, backdrop) {
    this.#field = field;
    this.#backdrop = backdrop;
    this.#words = new Words(backdrop);
    field.addEventListener("scroll", () => (backdrop.scrollTop = field.scrollTop));
    field.addEventListener("input", () => this.#words.begin("")); // the marks are of another text
  }

  /** From now on the marks are those of the text as it is now. */
  begin() {
    this.#words.begin(this.#field.value);
  }

  /** Nothing is lit for now. */
  rest() {
    this.#words.clear();
  }

  /** Light up what is heard at `seconds`; scroll only when it would be out of sight. */
  show(marks, seconds) {
    const coming = this.#words.show(marks, seconds);
    if (!coming) return;
    const field = this.#field;
    const top = coming.offsetTop;
    if (top < field.scrollTop || top > field.scrollTop + field.clientHeight - 40) {
      field.scrollTop = Math.max(0, top - field.clientHeight / 3);
    }
    this.#backdrop.scrollTop = field.scrollTop;
  }
}
