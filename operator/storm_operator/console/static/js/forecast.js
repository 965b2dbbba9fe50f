// Forecast against actual, a small chart for each component.

import { h, refill, s } from "./dom.js";
import { clockTime, figure } from "./format.js";
import { state, topologyNames } from "./state.js";

const WIDE = 300, HIGH = 96;
const MOST_POINTS = 180;
const MOST_CHARTS = 60;

export function renderForecast(view) {
  const names = topologyNames();
  const series = seriesOf(state.loads.slice(-MOST_POINTS));
  const groups = Map.groupBy ? Map.groupBy(series.slice(0, MOST_CHARTS), (one) => one.topology) : grouped(series.slice(0, MOST_CHARTS));
  refill(
    view,
    h(
      "div",
      { class: "view" },
      h("h2", {}, "Forecast against actual: tuples to process, by component"),
      h("div", { class: "legend" }, swatch("var(--text)", null), "what arrived", swatch("var(--accent)", "5 4"), "what was forecast a period before", h("span", {}, "Gaps: a plan disturbed the period, or nobody knows.")),
      series.length ? [...groups].map(([topology, own]) => [h("h3", {}, names.get(topology) ?? topology), h("div", { class: "charts" }, own.map(chart))]) : h("p", { class: "soft" }, "Nothing yet: a forecast needs a pass, and its actual another one."),
      series.length > MOST_CHARTS && h("p", { class: "soft" }, `${series.length - MOST_CHARTS} components with less load are not drawn; /api/v1/forecasts has them all.`),
    ),
  );
}

function grouped(series) {
  const groups = new Map();
  for (const one of series) groups.set(one.topology, [...(groups.get(one.topology) ?? []), one]);
  return groups;
}

function swatch(colour, dash) {
  return s("svg", { width: 30, height: 8 }, s("line", { x1: 0, x2: 30, y1: 4, y2: 4, stroke: colour, "stroke-width": 2.2, "stroke-dasharray": dash }));
}

/**
 * For each component its points {at, forecast, actual}; components with the most load first within a topology.
 * Only those that the last pass that saw any had: a pass that could not see the cluster has none.
 */
function seriesOf(passes) {
  const found = new Map();
  for (const pass of passes) {
    for (const load of pass.components) {
      const name = `${load.topology}/${load.component}`;
      if (!found.has(name)) found.set(name, { topology: load.topology, component: load.component, points: [] });
      found.get(name).points.push({ at: pass.at_seconds, forecast: load.forecast_per_second, actual: load.arrived_per_second, next: load.next_per_second });
    }
  }
  const newest = passes.findLast((pass) => pass.components.length > 0)?.at_seconds;
  const size = (one) => Math.max(0, ...one.points.map((point) => point.actual ?? point.forecast ?? 0));
  return [...found.values()].filter((one) => one.points.at(-1).at === newest).sort((a, b) => a.topology.localeCompare(b.topology) || size(b) - size(a));
}

function chart(one) {
  const points = one.points;
  const most = Math.max(1e-9, points.at(-1).next ?? 0, ...points.flatMap((point) => [point.actual ?? 0, point.forecast ?? 0]));
  const [first, newest] = [points[0].at, points.at(-1)];
  const last = newest.at + (points.length > 1 ? newest.at - points.at(-2).at : 0); // the forecast reaches one period on
  const x = (at) => (last > first ? ((at - first) / (last - first)) * WIDE : WIDE);
  const y = (value) => HIGH - 14 - ((HIGH - 32) * value) / most;
  const missed = error(points);
  const here = state.at === null ? null : x(Math.min(last, Math.max(first, state.at)));
  return h(
    "figure",
    { class: "panel", "data-component": one.component },
    h("figcaption", {}, h("span", {}, one.component), h("span", { class: "small soft number" }, missed === null ? "error unknown" : `off by ${figure(missed)}% in the mean`)),
    s(
      "svg",
      { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${one.component}: now ${figure(points.at(-1).actual)} tuples per second arrived, ${figure(points.at(-1).forecast)} were forecast` },
      s("line", { x1: 0, x2: WIDE, y1: HIGH - 14, y2: HIGH - 14, stroke: "var(--line)" }),
      s("path", { d: path(points, "actual", x, y), fill: "none", stroke: "var(--text)", "stroke-width": 1.8 }),
      s("path", { d: path([...points, { at: last, forecast: newest.next }], "forecast", x, y), fill: "none", stroke: "var(--accent)", "stroke-width": 1.8, "stroke-dasharray": "5 4" }),
      newest.next !== null && s("circle", { cx: x(last), cy: y(newest.next), r: 3.2, fill: "var(--accent)" }),
      here !== null && s("line", { x1: here, x2: here, y1: 0, y2: HIGH - 14, stroke: "var(--accent)" }),
      label(0, HIGH - 2, clockTime(first), "start"),
      label(WIDE, HIGH - 2, clockTime(newest.at), "end"),
      label(0, 8, `${figure(most)}/s`, "start"),
    ),
  );
}

function label(x, y, words, anchor) {
  return s("text", { x, y, "font-size": 10, fill: "var(--soft)", "text-anchor": anchor }, words);
}

function path(points, name, x, y) {
  let found = "", open = false;
  for (const point of points) {
    if (point[name] !== null) found += `${open ? "L" : "M"}${x(point.at).toFixed(1)},${y(point[name]).toFixed(1)} `;
    open = point[name] !== null;
  }
  return found;
}

function error(points) {
  const misses = points.filter((point) => point.forecast !== null && point.actual > 1e-6).map((point) => (100 * Math.abs(point.forecast - point.actual)) / point.actual);
  return misses.length ? misses.reduce((sum, miss) => sum + miss, 0) / misses.length : null;
}
