// The last hours along the foot of the page: traffic between supervisors, latency, plans and holds; and the slider.

import { h, refill, s } from "./dom.js";
import { clockTime, dayAndTime, duration, figure, words } from "./format.js";
import { gradeOf } from "./palette.js";
import { goTo, state } from "./state.js";

const HIGH = 66, BASE = 48, THUMB = 8; // half of the slider's thumb: the picture ends where the thumb's middle can be

export function makeTimeline(footer) {
  const chart = h("div", { class: "chart" });
  const slider = h("input", { type: "range", min: 0, step: 1, "aria-label": "Time", "data-key": "slider", oninput: () => moved() });
  const at = h("div", { class: "at" });
  const live = h("button", { "data-key": "live", title: "Back to now (l)", onclick: () => goTo(null) }, "Live");
  const back = h("button", { "aria-label": "One pass back", title: "One pass back (,)", onclick: () => stepBy(-1) }, "‹");
  const on = h("button", { "aria-label": "One pass on", title: "One pass on (.)", onclick: () => stepBy(1) }, "›");
  const picture = h("div", {});
  chart.append(picture, slider);
  const marks = h("div", { class: "marks" }, h("div", { class: "crossing" }, "— cross supervisors"), h("div", {}, "— latency p50"), h("div", {}, "◆ plan  ▪ hold"));
  footer.append(h("div", { class: "row" }, marks, chart, at, back, on, live));

  function moved() {
    const number = Number(slider.value);
    goTo(number >= state.points.length - 1 ? null : state.points[number].at_seconds);
  }

  function stepBy(by) {
    if (!state.points.length) return;
    slider.value = String(Math.min(state.points.length - 1, Math.max(0, Number(slider.value) + by)));
    moved();
  }

  function render() {
    const points = state.points;
    const last = points.length - 1;
    slider.max = String(Math.max(0, last));
    slider.disabled = last < 1;
    const here = state.at === null ? last : passAt(points, state.at + 0.001);
    slider.value = String(Math.max(0, here));
    const shown = points[here];
    slider.setAttribute("aria-valuetext", shown ? clockTime(shown.at_seconds) : "nothing yet");
    live.disabled = state.at === null;
    live.className = state.at === null ? "" : "primary";
    refill(at, shown ? [h("b", {}, clockTime(shown.at_seconds)), h("span", { class: "small soft" }, state.at === null ? span(points) : ago(points[last].at_seconds - shown.at_seconds))] : []);
    refill(picture, points.length > 1 ? drawn(points, here, Math.max(200, picture.clientWidth)) : s("svg", {}));
  }
  return { render, stepBy };
}

/** The last pass up to that time, as the operator finds it: where the clock was set back, a later pass is of an earlier time. */
function passAt(points, seconds) {
  let found = -1;
  points.forEach((point, at) => {
    if (point.at_seconds <= seconds && point.at_seconds >= (points[found]?.at_seconds ?? 0)) found = at;
  });
  return Math.max(0, found);
}

function ago(seconds) {
  return seconds < 0 ? "before the clock was set back" : `${duration(seconds)} ago`;
}

function span(points) {
  const seconds = points.length > 1 ? points.at(-1).at_seconds - points[0].at_seconds : 0;
  return seconds > 0 ? `last ${duration(seconds)}` : "live";
}

/** By number of the pass, as the slider has it: recent passes, which are kept densely, get the more room. */
function drawn(points, here, wide) {
  const x = (at) => THUMB + (at / (points.length - 1)) * (wide - 2 * THUMB);
  const crossing = points.map((point) => point.between_supervisors_tuples_per_second);
  const latency = points.map((point) => worst(point));
  const plot = s("svg", { viewBox: `0 0 ${wide} ${HIGH}`, role: "img", "aria-label": `Traffic between supervisors and latency in ${points.length} passes` });
  const most = greatest(crossing), slowest = greatest(latency);
  const y = (value, top) => BASE - (44 * value) / Math.max(1, top);
  plot.append(
    s("path", { d: shaded(crossing, x, (value) => y(value, most)), fill: "var(--crossing)", opacity: 0.16 }),
    s("path", { d: gapped(crossing, x, (value) => y(value, most)), fill: "none", stroke: "var(--crossing)", "stroke-width": 1.6, "vector-effect": "non-scaling-stroke" }),
    s("path", { d: gapped(latency, x, (value) => y(value, slowest)), fill: "none", stroke: "var(--soft)", "stroke-width": 1.4, "vector-effect": "non-scaling-stroke" }),
    ...holds(points, x),
    ...plans(points, x),
    s("line", { x1: x(here), x2: x(here), y1: 0, y2: HIGH, stroke: "var(--accent)", "stroke-width": 1.6, "vector-effect": "non-scaling-stroke" }),
  );
  plot.append(s("title", {}, `up to ${figure(most)} tuples/s between supervisors; latency p50 up to ${figure(slowest)} ms`));
  return plot;
}

/** null where all are unknown. */
function greatest(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? Math.max(...known) : null;
}

function worst(point) {
  return greatest(Object.values(point.topologies).map((one) => one.latency_p50_ms));
}

function gapped(values, x, y) {
  let path = "", open = false;
  values.forEach((value, at) => {
    if (value !== null) path += `${open ? "L" : "M"}${x(at).toFixed(1)},${y(value).toFixed(1)} `;
    open = value !== null;
  });
  return path;
}

/** The area between the line and its base. */
function shaded(values, x, y) {
  let path = "", last = null;
  values.forEach((value, at) => {
    if (value !== null) path += `${last === null ? `M${x(at).toFixed(1)},${BASE} ` : ""}L${x(at).toFixed(1)},${y(value).toFixed(1)} `;
    else if (last !== null) path += `L${x(last).toFixed(1)},${BASE} Z `;
    last = value === null ? null : at;
  });
  return last === null ? path : `${path}L${x(last).toFixed(1)},${BASE} Z`;
}

function holds(points, x) {
  const wide = x(1) - x(0);
  return points.flatMap((point, at) => {
    const hold = point.decisions.find((decision) => decision.kind === "hold");
    if (!hold) return [];
    const box = s("rect", { x: Math.max(THUMB, x(at) - wide), y: 53, width: wide + 0.3, height: 6, fill: `var(--${gradeOf(hold.reason)})`, opacity: 0.75 });
    box.append(s("title", {}, `${dayAndTime(point.at_seconds)}: hold, ${words(hold.reason)}: ${hold.message}`));
    return [box];
  });
}

function plans(points, x) {
  return points.flatMap((point, at) => {
    const plan = point.decisions.find((decision) => decision.kind === "plan");
    if (!plan) return [];
    const mark = s("path", { d: `M${x(at)},50 l5,6 l-5,6 l-5,-6 Z`, fill: "var(--accent)", stroke: "var(--card)" });
    mark.append(s("title", {}, `${dayAndTime(point.at_seconds)}: plan ${plan.plan_id}: ${plan.message}`));
    return [mark];
  });
}
