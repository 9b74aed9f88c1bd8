// The Status panel: the engine, its queue, and how fast its last streams were.

import { request } from "./api.js";
import { chart } from "./chart.js";
import { number, t } from "./text.js";

const PAUSE = 2_000; // ms between two looks
const $ = (name) => document.getElementById(`status-${name}`);

async function look() {
  let status;
  try {
    status = await (await request("v1/status")).json();
  } catch {
    $("line").textContent = t("status_lost");
    return;
  }
  $("line").textContent = status.failure ?? "";
  showFigures(status);
  showModules(status.modules);
  const finished = status.recent.filter(({ outcome }) => outcome === "ok");
  const values = (name) => finished.map((each) => each[name]).filter((value) => value !== null);
  chart($("ttfa"), values("ttfa"), { unit: " s", digits: 2 });
  chart($("rtf"), values("rtf"), { unit: "", digits: 2, limit: 1, limitWords: t("status_live") });
}

const FIGURES = {
  status_model: (status) => `${status.model} · ${status.revision}`,
  status_engine: (status) => status.engine,
  status_device: (status) => status.device,
  status_active: (status) => t("n_of_m", { n: status.active_streams, m: status.stream_limit }),
  status_queue: (status) => number(status.queue_length),
  status_made: (status) => `${number(status.emitted_seconds)} s`,
  status_cancelled: (status) => number(status.cancellations),
  status_underruns: (status) => number(status.underruns),
};

/** Before the first answer (`null`) the places are there already, so that nothing jumps. */
function showFigures(status) {
  const boxes = Object.entries(FIGURES).map(([key, words]) => {
    const box = document.createElement("div");
    const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = t(key);
    meaning.textContent = status ? words(status) : "–";
    box.append(term, meaning);
    return box;
  });
  $("figures").replaceChildren(...boxes);
}

function showModules(modules) {
  const milliseconds = (seconds) => `${number(1_000 * seconds, 1)} ms`;
  const rows = modules.map((module) => {
    const cells = [
      module.name.toUpperCase(),
      number(module.waiting),
      number(module.running),
      number(module.steps),
      milliseconds(module.step_seconds),
      milliseconds(module.step_seconds_p99),
      number(module.batch, 1),
    ];
    const row = document.createElement("tr");
    row.append(...cells.map((words, index) => cell(words, index === 0)));
    return row;
  });
  $("modules").replaceChildren(...rows);
}

function cell(words, head) {
  const element = document.createElement(head ? "th" : "td");
  if (head) element.scope = "row";
  element.textContent = words;
  return element;
}

/** Bring the panel to life; it asks only while it is looked at. */
export function initStatus() {
  const panel = document.getElementById("panel-status");
  let timer = null;
  showFigures(null);
  const begin = () => {
    look();
    timer = setInterval(() => document.hidden || look(), PAUSE);
  };
  panel.addEventListener("shown", begin);
  panel.addEventListener("hidden", () => clearInterval(timer));
  if (!panel.hidden) begin();
}
