// The map as a table: for screen readers, for searching, and for copying.

import { h, refill } from "./dom.js";
import { figure, percent } from "./format.js";
import { shareOf } from "./glyph.js";
import { state, topologyNames } from "./state.js";

const MOST_ROWS = 500;
let wanted = "";

export function renderTable(view) {
  const seen = state.view;
  if (!seen) return refill(view);
  const names = topologyNames();
  const rows = rowsOf(seen, names).filter((row) => row.words.includes(wanted.toLowerCase()));
  const field = h("input", { type: "search", placeholder: "supervisor, topology, component…", "aria-label": "Filter", "data-key": "filter", oninput: (event) => { wanted = event.target.value; renderTable(view); } });
  field.value = wanted;
  refill(
    view,
    h(
      "div",
      { class: "view" },
      h("div", { class: "fields" }, h("h2", {}, "Executors"), field, h("span", { class: "soft" }, `${rows.length} of ${seen.executors.length}${rows.length > MOST_ROWS ? `, the first ${MOST_ROWS} are shown` : ""}`)),
      h(
        "div",
        { class: "panel" },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ["supervisor", "port", "topology", "component", "tasks", "state"].map((name) => h("th", { scope: "col" }, name)), ["CPU used", "limit", "share", "executed/s", "queue"].map((name) => h("th", { scope: "col", class: "number" }, name)))),
          h("tbody", {}, rows.slice(0, MOST_ROWS).map((row) => row.element())),
        ),
      ),
    ),
  );
}

function rowsOf(view, names) {
  const stateful = new Set(view.topologies.flatMap((topology) => topology.components.filter((one) => one.stateful).map((one) => `${topology.id}/${one.name}`)));
  const rows = view.executors.map((executor) => {
    const worker = executor.worker === null ? null : view.workers[executor.worker];
    const host = worker ? view.supervisors[worker.supervisor].host : "no place";
    const topology = names.get(executor.topology) ?? executor.topology;
    const kind = stateful.has(`${executor.topology}/${executor.component}`) ? "stateful" : "stateless";
    return { order: `${host} ${worker?.port}`, words: [host, worker?.port, topology, executor.component, kind].join(" ").toLowerCase(), element: () => row(executor, [host, worker?.port ?? "", topology, executor.component, executor.tasks, kind]) };
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
