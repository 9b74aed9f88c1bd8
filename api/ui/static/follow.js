// A text field whose words light up as they are heard: a copy of its text lies behind it.

/** Marks of a Speech count characters as Python does; JavaScript counts UTF-16 units. */
function unitsOf(text) {
  const places = [0];
  let at = 0;
  for (const character of text) places.push((at += character.length));
  return places;
}

export class Follower {
  #field;
  #backdrop;
  #text = "";
  #places = [0];
  #shown = "";

  constructor(field, backdrop) {
    this.#field = field;
    this.#backdrop = backdrop;
    field.addEventListener("scroll", () => (backdrop.scrollTop = field.scrollTop));
    field.addEventListener("input", () => this.clear());
  }

  /** From now on the marks are those of the text as it is now. */
  begin() {
    this.#text = this.#field.value;
    this.#places = unitsOf(this.#text);
    this.#shown = "";
  }

  clear() {
    this.#text = "";
    this.#shown = "";
    this.#backdrop.replaceChildren();
  }

  /** Light up what is heard at `seconds`; `marks` of a Speech. */
  show(marks, seconds) {
    const mark = marks.find(({ end }) => seconds < end) ?? marks.at(-1);
    if (!mark || !this.#text) return;
    const previous = marks[marks.indexOf(mark) - 1];
    const from = Math.max(mark.segment.start, previous?.textEnd ?? 0);
    const share = Math.max(0, Math.min(1, (seconds - mark.start) / (mark.end - mark.start || 1)));
    const spoken = Math.round(from + share * (mark.textEnd - from));
    this.#paint(mark.segment.start, spoken, mark.segment.end);
  }

  #paint(start, spoken, end) {
    const key = `${start} ${spoken} ${end}`;
    if (key === this.#shown) return;
    this.#shown = key;
    const at = (place) => this.#places[Math.min(place, this.#places.length - 1)];
    const [a, b, c] = [at(start), at(spoken), at(end)];
    const heard = document.createElement("mark");
    heard.className = "heard";
    heard.textContent = this.#text.slice(a, b);
    const coming = document.createElement("mark");
    coming.textContent = this.#text.slice(b, c);
    this.#backdrop.replaceChildren(this.#text.slice(0, a), heard, coming, this.#text.slice(c));
    this.#keepInView(coming);
  }

  /** Scroll only when the words being heard would be out of sight. */
  #keepInView(mark) {
    const field = this.#field;
    const top = mark.offsetTop;
    if (top < field.scrollTop || top > field.scrollTop + field.clientHeight - 40) {
      field.scrollTop = Math.max(0, top - field.clientHeight / 3);
    }
    this.#backdrop.scrollTop = field.scrollTop;
  }
}
