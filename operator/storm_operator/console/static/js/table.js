// The map as tables, of executors and of flows: for screen readers, for searching, and for copying.

import { h, refill } from "./dom.js";
import { flowHead, flowRows, KINDS } from "./flow_table.js";
import { figure, percent } from "./format.js";
import { shareOf } from "./glyph.js";
import { shortHost } from "./hosts.js";
import { state, topologyNames } from "./state.js";

const MOST_ROWS = 500;
let wanted = "", shown = "executors";

export function renderTable(view) {
  const seen = state.view;
  if (!seen) return refill(view);
  const { rows, all, left } = shown === "executors" ? executorRows(seen) : flowRows(seen, shown, topologyNames(), wanted.toLowerCase());
  const field = h("input", { type: "search", placeholder: "supervisor, topology, component…", "aria-label": "Filter", "data-key": "filter", oninput: (event) => { wanted = event.target.value; renderTable(view); } });
  field.value = wanted;
  const options = Object.entries({ executors: "executors", ...KINDS }).map(([name, words]) => h("option", { value: name, selected: name === shown }, words));
  const choice = h("select", { "aria-label": "Show", "data-key": "shown", onchange: (event) => { shown = event.target.value; renderTable(view); } }, options);
  const counted = `${rows.length} of ${all}${rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} are shown` : ""}${left ? `; ${figure(left)} lighter ones are not listed` : ""}`;
  refill(
    view,
    h(
      "div",
      { class: "view" },
      h("div", { class: "fields" }, h("h2", {}, "Table"), choice, field, h("span", { class: "soft" }, counted)),
      h("div", { class: "panel" }, h("table", {}, h("thead", {}, shown === "executors" ? executorHead() : flowHead()), h("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => row.element())))),
    ),
  );
}

function executorHead() {
  return h("tr", {}, ["supervisor", "port", "topology", "component", "tasks", "state"].map((name) => h("th", { scope: "col" }, name)), ["CPU used", "limit", "share", "executed/s", "queue"].map((name) => h("th", { scope: "col", class: "number" }, name)));
}

function executorRows(seen) {
  return { rows: rowsOf(seen, topologyNames()).filter((row) => row.words.includes(wanted.toLowerCase())), all: seen.executors.length, left: 0 };
}

function rowsOf(view, names) {
  const stateful = new Set(view.topologies.flatMap((topology) => topology.components.filter((one) => one.stateful).map((one) => `${topology.id}/${one.name}`)));
  const rows = view.executors.map((executor) => {
    const worker = executor.worker === null ? null : view.workers[executor.worker];
    const host = worker ? view.supervisors[worker.supervisor].host : "no place";
    const topology = names.get(executor.topology) ?? executor.topology;
    const kind = stateful.has(`${executor.topology}/${executor.component}`) ? "stateful" : "stateless";
    return { order: `${host} ${worker?.port}`, words: [host, worker?.port, topology, executor.component, kind].join(" ").toLowerCase(), element: () => row(executor, [worker ? shortHost(view, host) : host, worker?.port ?? "", topology, executor.component, executor.tasks, kind]) };
  });
  return rows.sort((a, b) => a.order.localeCompare(b.order, "en", { numeric: true }));
}

function row(executor, cells) {
  const share = shareOf(executor);
  const bar = h("div", { class: "bar", role: "presentation" }, h("i", {}));
  bar.firstChild.style.width = `${Math.min(100, 100 * (share ?? 0))}%`;
  return h(
    "tr",
    {},
    cells.map((cell) => h("td", {}, String(cell))),
    [executor.cpu_used_millicores, executor.limit_millicores].map((value) => h("td", { class: "number" }, value === null ? "–" : figure(value))),
    h("td", { class: "number" }, share === null ? "unknown" : percent(share, 1), bar),
    [executor.executed_per_second, executor.queue_length].map((value) => h("td", { class: "number" }, value === null ? "unknown" : figure(value))),
  );
}
