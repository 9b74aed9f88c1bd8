// What several panels need of the browser: files, the clipboard, keys.

import { t } from "./text.js";

/** Let the visitor keep a Blob as a file. */
export function save(blob, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60_000);
}

/** Copy text; `button` says that it was done. */
export async function copy(text, button) {
  const words = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea"); // where the clipboard is not offered
    field.value = text;
    button.after(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  button.textContent = t("copied");
  setTimeout(() => (button.textContent = words), 1_500);
}

/** Whether keys belong to a field that is being written in. */
export const writing = (event) =>
  event.target.matches?.("textarea, select, input:not([type=range], [type=checkbox])");

/** Ctrl or ⌘ and Enter: do it. */
export const isGo = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey);

/** Escape: stop it. */
export const isStop = (event) => event.key === "Escape";

/** Call `act` for a key while `panel` is shown. */
export function shortcut(panel, matches, act) {
  document.addEventListener("keydown", (event) => {
    if (panel.hidden || document.querySelector("dialog[open]") || !matches(event)) return;
    event.preventDefault();
    act(event);
  });
}
