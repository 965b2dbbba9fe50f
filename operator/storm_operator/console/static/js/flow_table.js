// The map's lines as a table: which flow, how many tuples, and at which level.

import { h } from "./dom.js";
import { allTraffic, flowsBetween, LEVELS } from "./flows.js";
import { figure, milliseconds, percent } from "./format.js";
import { placeOf } from "./tips.js";

export const KINDS = { executor: "flows between executors", worker: "flows between workers", supervisor: "flows between supervisors" };

/** {rows, all, left}: those that have `wanted` in their words, heaviest first; of how many; how many lighter ones are unknown here. */
export function flowRows(view, kind, names, wanted) {
  const traffic = view.traffic, total = allTraffic(traffic);
  const flows = flowsBetween(view, kind).map((flow) => {
    const cells = [placeOf(view, kind, flow.source), placeOf(view, kind, flow.target), topologyOf(view, kind, flow.source, names), LEVELS[flow.level]];
    return { words: cells.join(" ").toLowerCase(), element: () => row(cells, flow, total) };
  });
  return { rows: flows.filter((flow) => flow.words.includes(wanted)), all: flows.length, left: traffic[`left_out_${kind}_flows`] ?? 0 };
}

export function flowHead() {
  return h("tr", {}, ["from", "to", "topology", "level"].map((name) => h("th", { scope: "col" }, name)), ["tuples/s", "of all", "round trip"].map((name) => h("th", { scope: "col", class: "number" }, name)));
}

function row(cells, flow, total) {
  const figures = [figure(flow.rate), percent(flow.rate, total), flow.roundTrip === undefined ? "–" : milliseconds(flow.roundTrip)];
  return h("tr", {}, cells.map((cell) => h("td", { class: cell === LEVELS.crossing ? "crossing" : null }, cell)), figures.map((cell) => h("td", { class: "number" }, cell)));
}

function topologyOf(view, kind, at, names) {
  if (kind === "supervisor") return "";
  const id = view[`${kind}s`][at].topology;
  return names.get(id) ?? id;
}
