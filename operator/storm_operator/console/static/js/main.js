// The page: which view is shown, the head of the page, keys, and what is redrawn when.

import { renderDecisions } from "./decisions.js";
import { h, refill } from "./dom.js";
import { allTraffic } from "./flows.js";
import { renderForecast } from "./forecast.js";
import { clockTime, figure, percent } from "./format.js";
import { makeMap } from "./map.js";
import { renderPlans } from "./plans.js";
import { renderSide } from "./side.js";
import { changed, chooseCluster, follow, goTo, hasNoCluster, onChange, showTab, state } from "./state.js";
import { renderTable } from "./table.js";
import { makeTimeline } from "./timeline.js";

const [view, side, footer, dialog, spoken] = ["view", "side", "timeline", "dialog", "spoken"].map((id) => document.getElementById(id));
const speak = (words) => (spoken.textContent = words);
const map = makeMap(view, speak);
const timeline = makeTimeline(footer);
const TABS = {
  map: { title: "Map", render: null },
  plans: { title: "Plans", render: renderPlans, follows: ["plans", "clusters"] },
  forecast: { title: "Forecast", render: renderForecast, follows: ["points", "at"] },
  decisions: { title: "Decisions", render: renderDecisions, follows: ["points", "plans"] },
  table: { title: "Table", render: renderTable, follows: ["view"] },
};
const KEYS = [
  ["1 … 5", "map, plans, forecast, decisions, table"],
  [", and .", "one pass back, one pass on"],
  ["l", "back to live"],
  ["arrows", "on the map: select what is next in that direction"],
  ["u and i", "on the map: up to the worker, to the supervisor; into them again"],
  ["shift + arrows", "on the map: move it"],
  ["Enter", "on the map: fold or unfold the selected worker"],
  ["f", "on the map: fold or unfold all workers"],
  ["+ − 0", "on the map: zoom in, out, show everything"],
  ["Esc", "select nothing"],
  ["d", "light or dark"],
  ["?", "this list"],
];

function renderHead() {
  const waiting = state.plans.filter((plan) => plan.waits_for_approval).length;
  refill(
    document.getElementById("tabs"),
    Object.entries(TABS).map(([name, tab], at) =>
      h("button", { role: "tab", "aria-selected": String(state.tab === name), title: `${tab.title} (${at + 1})`, "data-key": `tab-${name}`, onclick: () => showTab(name) }, tab.title, name === "plans" && waiting > 0 && h("span", { class: "badge", title: "wait for approval" }, String(waiting)))),
  );
  const select = document.getElementById("cluster");
  select.hidden = state.clusters.length < 2;
  select.replaceChildren(...state.clusters.map((name) => h("option", { value: name, selected: name === state.cluster }, name)));
  const trouble = document.getElementById("trouble");
  const words = state.lost ? `${state.trouble}; asking again` : state.trouble || unseen(state.view);
  trouble.hidden = !words;
  trouble.textContent = words;
  const live = document.getElementById("live");
  const [kind, said] = state.lost ? ["bad", "no answer"] : hasNoCluster() ? ["warn", "no cluster"] : state.at !== null ? ["warn", "past"] : state.quietSince ? ["warn", "no new pass"] : ["good", "● live"];
  live.className = `pill ${kind}`;
  live.textContent = said;
  live.title = state.quietSince ? `The loop has made no pass since ${clockTime(state.quietSince / 1000)}, by this machine's clock.` : "";
  document.title = `${waiting ? `(${waiting}) ` : ""}storm-operator${state.clusters.length > 1 ? `: ${state.cluster}` : ""}`;
}

/** Since when the cluster could not be seen, where that is so in the pass that is shown. */
function unseen(seen) {
  if (!seen || (seen.measured_at_seconds !== null && seen.measured_at_seconds >= seen.at_seconds)) return "";
  if (seen.measured_at_seconds === null) return "the cluster has not been seen yet: the decisions say why";
  return `the cluster could not be seen since ${clockTime(seen.measured_at_seconds)}: all figures are of then`;
}

function renderFigures() {
  const seen = state.view;
  if (!seen) return refill(document.getElementById("figures"));
  const all = allTraffic(seen.traffic), crossing = seen.traffic.between_supervisors_tuples_per_second;
  const latencies = seen.topologies.map((topology) => topology.latency_p50_ms).filter((value) => value !== null);
  const used = seen.supervisors.filter((supervisor) => supervisor.workers).length;
  const entry = (value, name, kind = "") => h("div", {}, h("b", { class: kind }, value), h("span", {}, name));
  refill(
    document.getElementById("figures"),
    crossing === null ? entry("unknown", "between supervisors", "crossing") : entry(`${figure(crossing)}/s`, `between supervisors (${percent(crossing, all)})`, "crossing"),
    entry(latencies.length ? `${figure(Math.max(...latencies))} ms` : "unknown", "slowest p50 latency"),
    entry(`${used} of ${seen.supervisors.length}`, "supervisors in use"),
    entry(figure(seen.executors.length), "executors"),
  );
}

function renderView() {
  side.hidden = state.tab !== "map";
  view.setAttribute("aria-label", TABS[state.tab].title);
  if (state.tab === "map") map.show();
  else TABS[state.tab].render(view);
}

onChange((what) => {
  renderHead();
  if (what.has("view")) renderFigures();
  if (what.has("tab") || what.has("theme")) renderView();
  else if (TABS[state.tab].follows?.some((kind) => what.has(kind))) TABS[state.tab].render(view);
  if (what.has("view") || what.has("plans") || what.has("selected") || what.has("theme") || what.has("tab")) renderSide(side, dialog);
  if (what.has("points") || what.has("at") || what.has("view")) timeline.render();
});

function toggleTheme() {
  const dark = document.documentElement.dataset.theme === "dark";
  setTheme(dark ? "light" : "dark");
  localStorage.setItem("storm-operator-theme", dark ? "light" : "dark");
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  changed("theme");
}

function showKeys() {
  dialog.replaceChildren(
    h("button", { class: "close", onclick: () => dialog.close() }, "Close"),
    h("h3", {}, "Keys"),
    h("dl", { class: "pairs help" }, KEYS.map(([keys, meaning]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, meaning)])),
    h("p", { class: "small soft" }, "Everything shown here is also at ", h("a", { href: "openapi.json" }, "the JSON API"), " and in storm-operator status."),
  );
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.target.matches("input, select, textarea") && event.target.type !== "range") return;
  const tab = Object.keys(TABS)[Number(event.key) - 1];
  if (tab) showTab(tab);
  else if (event.key === ",") timeline.stepBy(-1);
  else if (event.key === ".") timeline.stepBy(1);
  else if (event.key === "l") goTo(null);
  else if (event.key === "d") toggleTheme();
  else if (event.key === "?") showKeys();
  else return;
  event.preventDefault();
});
document.getElementById("cluster").addEventListener("change", (event) => chooseCluster(event.target.value));
document.getElementById("theme").addEventListener("click", toggleTheme);
document.getElementById("help").addEventListener("click", showKeys);
new ResizeObserver(() => timeline.render()).observe(footer);

const wished = localStorage.getItem("storm-operator-theme");
setTheme(wished ?? (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
changed("tab");
window.stormOperator = { state, map }; // for tests and for the curious
follow();
