// The list of saved voices, each of which can be deleted.

import { request } from "./api.js";
import { choices, label } from "./choices.js";
import { t } from "./text.js";

/** Show the voices that do not come with the model. */
export function showSaved() {
  const saved = choices.voices.filter((voice) => !choices.shipped.includes(voice.id));
  document.getElementById("clone-none").hidden = saved.length > 0;
  document.getElementById("clone-voices").replaceChildren(...saved.map(line));
}

function line(voice) {
  const item = document.createElement("li");
  const name = document.createElement("strong");
  name.textContent = voice.name;
  const facts = document.createElement("span");
  facts.className = "soft";
  facts.textContent = `${label("language", voice.language)}, ${label("style", voice.style)}`;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = t("delete");
  button.setAttribute("aria-label", t("clone_delete", { name: voice.name }));
  button.addEventListener("click", () => remove(voice, button));
  item.append(name, facts, button);
  return item;
}

/** The first click asks, the second deletes. */
async function remove(voice, button) {
  if (!button.dataset.sure) {
    button.dataset.sure = "yes";
    button.textContent = t("sure");
    setTimeout(() => {
      delete button.dataset.sure;
      button.textContent = t("delete");
    }, 3_000);
    return;
  }
  button.disabled = true;
  try {
    await request(`v1/audio/voices/${voice.id}`, { method: "DELETE" });
  } finally {
    await choices.load();
  }
}
