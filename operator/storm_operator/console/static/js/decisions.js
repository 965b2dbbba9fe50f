// What was decided and why, newest first: passes with the same decision are one line.

import { h, refill } from "./dom.js";
import { clockTime, dayAndTime, figure, readable, words } from "./format.js";
import { decisionPill } from "./side.js";
import { changed, goTo, showTab, state, topologyNames } from "./state.js";

const MOST_LINES = 200;

/** Runs of passes in which the same was decided about the same topologies, newest first. A pass without a decision about
 * them ends their run. */
export function runsOf(points) {
  const open = new Map(), runs = [];
  for (const point of points) {
    const decided = new Set(point.decisions.map((decision) => decision.topologies.join()));
    for (const who of open.keys()) if (!decided.has(who)) open.delete(who);
    for (const decision of point.decisions) {
      const who = decision.topologies.join();
      const what = decision.kind === "plan" ? decision.plan_id : decision.reason;
      const run = open.get(who);
      if (run && run.what === what) Object.assign(run, { to: point.at_seconds, passes: run.passes + 1, decision });
      else {
        const fresh = { what, from: point.at_seconds, to: point.at_seconds, passes: 1, decision };
        open.set(who, fresh);
        runs.push(fresh);
      }
    }
  }
  return runs.sort((a, b) => b.from - a.from).slice(0, MOST_LINES);
}

export function renderDecisions(view) {
  const names = topologyNames();
  const runs = runsOf(state.points);
  refill(
    view,
    h("div", { class: "view" }, h("h2", {}, "What was decided, and why"), runs.length ? h("ol", { class: "log" }, runs.map((run) => line(run, names))) : h("p", { class: "soft" }, "Nothing yet.")),
  );
}

function line({ from, to, passes, decision }, names) {
  const gain = decision.gain_percent;
  const who = decision.topologies.map((id) => names.get(id) ?? id).join(", ") || "everything";
  const state_ = decision.kind === "plan" && state.plans.find((plan) => plan.id === decision.plan_id)?.state;
  return h(
    "li",
    {},
    h("div", { class: "times" }, h("button", { class: "link", "data-key": `at-${from}-${who}`, title: "Show the cluster as it was", onclick: () => (showTab("map"), goTo(from)) }, dayAndTime(from)), passes > 1 && h("div", { class: "small" }, `to ${clockTime(to)}, ${passes} passes`)),
    h("div", {}, decisionPill(decision), h("div", { class: "small soft" }, who)),
    h(
      "div",
      {},
      h("div", {}, readable(decision.message)),
      decision.kind === "plan"
        ? h("button", { class: "link small", "data-key": `plan-${decision.plan_id}`, onclick: () => openPlan(decision.plan_id) }, `${decision.plan_id}${state_ ? `: ${words(state_)}` : ""} · before and after`)
        : gain > 0 && h("div", { class: "small soft" }, `The best known placement would lower the cost by ${figure(gain)}%.`),
    ),
  );
}

function openPlan(id) {
  state.plan = id;
  showTab("plans");
  changed("plans");
}
