// Votes of this browser window: kept in its session storage, listed, exported.

import { save } from "./page.js";
import { t } from "./text.js";

const PLACE = "tontaube-votes";
const COLUMNS = ["at", "blind", "best", "others", "text"];

export class Votes {
  constructor() {
    this.all = JSON.parse(sessionStorage.getItem(PLACE) ?? "[]");
    document.getElementById("votes-csv").addEventListener("click", () => {
      save(new Blob([this.csv()], { type: "text/csv" }), "tontaube-votes.csv");
    });
    document.getElementById("votes-json").addEventListener("click", () => {
      const text = JSON.stringify(this.all, null, 2);
      save(new Blob([text], { type: "application/json" }), "tontaube-votes.json");
    });
    this.#show();
  }

  /** `vote`: {blind, best, others: settings in words and values, text}. */
  add(vote) {
    this.all.push({ at: new Date().toISOString(), ...vote });
    sessionStorage.setItem(PLACE, JSON.stringify(this.all));
    this.#show();
  }

  /** One line a vote; quotes doubled, as spreadsheets expect. */
  csv() {
    const cell = (value) => `"${String(value).replaceAll('"', '""')}"`;
    const lines = this.all.map((vote) => {
      const flat = { ...vote, best: vote.best.words, others: vote.others.map((o) => o.words) };
      return COLUMNS.map((name) => cell(name === "others" ? flat.others.join(" | ") : flat[name]));
    });
    return [COLUMNS, ...lines].map((cells) => `${cells.join(",")}\r\n`).join("");
  }

  #show() {
    const items = this.all.map((vote) => {
      const item = document.createElement("li");
      const best = document.createElement("strong");
      best.textContent = vote.best.words;
      const others = vote.others.map((other) => other.words).join(", ");
      const blind = vote.blind ? ` (${t("votes_blind")})` : "";
      item.append(`${t("votes_best")}: `, best, `${blind}. ${t("votes_others")}: ${others}`);
      return item;
    });
    document.getElementById("votes-list").replaceChildren(...items.reverse());
    document.getElementById("votes-none").hidden = items.length > 0;
    for (const kind of ["csv", "json"]) {
      document.getElementById(`votes-${kind}`).disabled = items.length === 0;
    }
  }
}
