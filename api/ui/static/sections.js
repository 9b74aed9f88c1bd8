// A long text → sections worth a request each: paragraphs, with their headings, none too long.

const LONGEST = 1_200; // characters
const HEADING = 80;
const SENTENCE = /[^.!?…]+(?:[.!?…]+["'”’»)\]]*\s*|$)/gsu;

/** The sections' texts, in order. */
export function split(text) {
  const sections = [];
  let heading = "";
  for (const paragraph of text.split(/\n\s*\n/).map((part) => part.trim())) {
    if (!/[\p{L}\p{N}]/u.test(paragraph)) continue; // "* * *"
    if (isHeading(paragraph)) {
      heading += `${paragraph}\n\n`;
      continue;
    }
    sections.push(...shorten(heading + paragraph));
    heading = "";
  }
  if (heading) sections.push(heading.trim());
  return sections;
}

const isHeading = (paragraph) => paragraph.length <= HEADING && !/[.!?…"”»]$/u.test(paragraph);

function shorten(paragraph) {
  if (paragraph.length <= LONGEST) return [paragraph];
  const parts = [""];
  for (const sentence of paragraph.match(SENTENCE) ?? [paragraph]) {
    if (parts.at(-1) && parts.at(-1).length + sentence.length > LONGEST) parts.push("");
    parts[parts.length - 1] += sentence;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
}
