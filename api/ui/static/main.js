// The page comes alive: words, choices, tabs, the health line; each panel is a module of its own.

import { address, apiKey, request, useKeyDialog } from "./api.js";
import { choices } from "./choices.js";
import { initClone } from "./clone.js";
import { initCompare } from "./compare.js";
import { initLongText } from "./longtext.js";
import { copy } from "./page.js";
import { player } from "./player.js";
import { initSpeak } from "./speak.js";
import { initStatus } from "./status.js";
import { loadTexts, t, translate } from "./text.js";

const HEALTH = 5_000; // ms between two looks

/** Gradio puts our HTML into the document when it is ready. */
function appeared(id) {
  return new Promise((resolve) => {
    const look = () => {
      const found = document.getElementById(id);
      if (found) resolve(found);
      return found;
    };
    if (look()) return;
    const watcher = new MutationObserver(() => look() && watcher.disconnect());
    watcher.observe(document, { childList: true, subtree: true });
  });
}

/** Tabs by click, arrow keys and the address: `#compare`. Panels hear "shown" and "hidden". */
function initTabs(root) {
  const tabs = [...root.querySelectorAll("[role=tab]")];
  const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const select = (tab) => {
    for (const other of tabs) {
      const chosen = other === tab;
      const panel = panelOf(other);
      other.setAttribute("aria-selected", chosen);
      other.tabIndex = chosen ? 0 : -1;
      if (panel.hidden === !chosen) continue;
      panel.hidden = !chosen;
      panel.dispatchEvent(new Event(chosen ? "shown" : "hidden"));
    }
  };
  const go = (tab) => {
    history.replaceState(null, "", `#${tab.id.replace("tab-", "")}`);
    select(tab);
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => go(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: -1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      go(next);
      next.focus();
    });
  }
  const follow = () => {
    const name = location.hash.slice(1).split("?")[0];
    select(tabs.find((tab) => tab.id === `tab-${name}`) ?? tabs[0]);
  };
  addEventListener("hashchange", follow);
  follow();
}

function initKeyDialog() {
  const dialog = document.getElementById("key-dialog");
  const field = document.getElementById("key-field");
  let asking = null;
  useKeyDialog(() => {
    asking ??= new Promise((resolve) => {
      dialog.addEventListener(
        "close",
        () => {
          const given = dialog.returnValue === "use" && field.value.trim() !== "";
          if (given) apiKey.set(field.value.trim());
          asking = null;
          resolve(given);
        },
        { once: true },
      );
      field.value = "";
      dialog.showModal();
    });
    return asking;
  });
}

/** Say whether the server can speak; ask again as long as it cannot, and now and then after. */
function initHealth(root) {
  const line = document.getElementById("health");
  const look = async () => {
    let state = "offline";
    try {
      const answer = await fetch(address("ready"));
      state = answer.ok ? "ready" : "loading";
    } catch {
      // No server: "offline".
    }
    if (line.dataset.state !== state) {
      line.dataset.state = state;
      line.querySelector(".words").textContent = t(`health_${state}`);
      root.dataset.server = state;
    }
  };
  look();
  setInterval(() => document.hidden || look(), HEALTH);
}

/** Buttons that copy what an element says. */
function initCopying(root) {
  root.addEventListener("click", (event) => {
    const { copies } = event.target.dataset;
    if (copies) copy(document.getElementById(copies).textContent, event.target);
  });
}

async function loadChoices() {
  for (;;) {
    try {
      return await choices.load();
    } catch (error) {
      if (error.status === 401) {
        document.querySelector("#health .words").textContent = t("health_locked");
        await new Promise(() => {}); // until the page is loaded again
      }
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    }
  }
}

/** Browsers without a sound device wait for one without a word. */
function initMute() {
  player.addEventListener("mute", () => {
    document.querySelector("#health .words").textContent = t("health_mute");
  });
}

async function begin() {
  const [root, language] = await Promise.all([appeared("tontaube"), loadTexts()]);
  root.lang = document.documentElement.lang = language;
  translate(root);
  initKeyDialog();
  initCopying(root);
  initTabs(root);
  initHealth(root);
  initMute();
  await loadChoices();
  initSpeak(language);
  initCompare();
  initClone();
  initLongText();
  initStatus();
  root.dataset.state = "ready";
}

/** For people who look behind the page, and for its tests. */
globalThis.tontaube = { player, choices, request };

begin();
