// The last plans: each with its reason in words, before, after and difference side by side, and what it brought.

import { decide, get } from "./api.js";
import { h, refill } from "./dom.js";
import { change, clockTime, count, dayAndTime, duration, figure, readable, words } from "./format.js";
import { shortHost } from "./hosts.js";
import { drawScene } from "./scene.js";
import { changed, state, topologyNames } from "./state.js";

const PILL = { Verified: "good", RolledBack: "bad", Failed: "bad", Proposed: "warn", Rejected: "warn", Applying: "accent", Settling: "accent" };
let token = ""; // in memory only: it is gone when the page is closed
const said = new Map(); // by plan: what became of a verdict
let pinned = null; // what is looked at stays until somebody chooses: a newer plan must not come under the cursor

export function renderPlans(view) {
  const plans = state.plans;
  if (!plans.length) {
    refill(view, h("div", { class: "view" }, h("h2", {}, "Plans"), h("p", { class: "soft" }, "No plan has been made since the operator started; one that waited for approval before that is proposed anew while it is worth it. The decisions say why.")));
    return;
  }
  if (!view.querySelector(".plans")) pinned = null; // it is only being opened
  const named = (id) => plans.find((plan) => plan.id === id);
  const shown = named(state.plan) ?? named(pinned) ?? plans[0];
  pinned = shown.id;
  refill(view, h("div", { class: "view plans" }, h("div", {}, h("h2", {}, "Plans"), h("ol", {}, plans.map((plan) => entry(plan, plan === shown)))), detail(shown)));
  showScene(view, shown);
}

function entry(plan, isShown) {
  return h(
    "li",
    {},
    h(
      "button",
      { "aria-current": isShown ? "true" : null, "data-key": `entry-${plan.id}`, onclick: () => { state.plan = plan.id; changed("plans"); } },
      h("div", { class: "top" }, h("b", {}, dayAndTime(plan.created_at_seconds)), statePill(plan)),
      h("div", { class: "small soft" }, `${count(plan.restarted_workers, "restart")}, ${count(plan.moves.length, "new slot")}${plan.gain_percent === null ? "" : `, cost ${change(-plan.gain_percent)}`}`),
    ),
  );
}

function statePill(plan) {
  const name = plan.approved_by && plan.state === "Proposed" ? "Approved" : plan.state;
  if (plan.effect_is_unknown) return h("span", { class: "pill warn" }, `${words(name)}, effect unknown`);
  return h("span", { class: `pill ${PILL[plan.state] ?? ""}` }, words(name));
}

function detail(plan) {
  const names = topologyNames();
  return h(
    "article",
    { class: "plan panel" },
    h("h2", {}, plan.topologies.map((id) => names.get(id) ?? id).join(", "), " ", statePill(plan)),
    h("p", { class: "why" }, sentence(plan.reason)),
    plan.message && h("p", { class: "soft" }, sentence(plan.message)),
    course(plan),
    plan.waits_for_approval && state.approval !== "off" && verdict(plan),
    h("div", { class: "sides" }, ["before", "after", "difference"].map((name) => side(name, plan))),
    h("div", { class: "lower" }, figures(plan), moves(plan, names)),
  );
}

function sentence(text) {
  return text ? `${text[0].toUpperCase()}${readable(text.slice(1))}.` : "";
}

function course(plan) {
  const parts = [
    `${plan.id} by ${plan.policy}, ${words(plan.method)}`,
    plan.approved_by && `approved by ${plan.approved_by === "auto" ? "itself" : plan.approved_by}${plan.approved_at_seconds ? ` at ${clockTime(plan.approved_at_seconds)}` : ""}`,
    plan.seconds_to_in_force !== null && `in force after ${duration(plan.seconds_to_in_force)}`,
    plan.seconds_to_running !== null && `moved executors ran ${duration(plan.seconds_to_running)} later`,
    plan.failed_tuples !== null && `${figure(plan.failed_tuples)} failed tuples`,
    plan.payback_seconds !== null && `pays back in ${duration(plan.payback_seconds)}`,
  ];
  return h("p", { class: "small soft" }, parts.filter(Boolean).join(" · "));
}

function verdict(plan) {
  const field = state.approval === "token" && h("input", { type: "password", placeholder: "Kubernetes token", "aria-label": "Kubernetes token", autocomplete: "off", "data-key": "token", value: token, oninput: (event) => (token = event.target.value) });
  const answer = async (kind) => {
    said.set(plan.id, await decide(plan.id, kind, state.cluster, token).then((found) => found.message, (error) => error.message));
    changed("plans");
  };
  return h(
    "div",
    { class: "verdict" },
    h("b", {}, "Waits for a person."),
    field,
    h("button", { class: "primary", "data-key": `approve-${plan.id}`, onclick: () => answer("approve") }, "Approve"),
    h("button", { "data-key": `reject-${plan.id}`, onclick: () => answer("reject") }, "Reject"),
    h("span", { role: "status" }, said.get(plan.id) ?? ""),
  );
}

function side(name, plan) {
  const rate = { before: plan.predicted_before, after: plan.predicted_after }[name];
  const right = rate ? h("span", { class: "small crossing" }, `${figure(rate.inter_supervisor_tuples_per_second)}/s cross`) : name === "difference" && h("span", { class: "small soft" }, count(plan.moves.length, "new slot"));
  return h("figure", {}, h("figcaption", {}, h("span", {}, name[0].toUpperCase() + name.slice(1)), right), h("canvas", { "data-scene": name, role: "img", "aria-label": `The cluster ${name === "difference" ? "and what moves" : `${name} the plan`}: the tables below say the same` }));
}

const ROWS = [
  ["between supervisors, tuples/s", "inter_supervisor_tuples_per_second", "inter_supervisor_tuples_per_second", -1],
  ["between workers, tuples/s", "inter_worker_tuples_per_second", null, -1],
  ["network usage, tuple-ms/s", "network_usage", null, -1],
  ["supervisors in use", "supervisors_used", null, -1],
  ["CPU beyond headroom and threads, millicores", "overloaded_millicores", null, -1],
  ["complete latency mean, ms", "complete_latency_ms", "complete_latency_mean_ms", -1],
  ["complete latency p50, ms", null, "complete_latency_p50_ms", -1],
  ["complete latency p99, ms", null, "complete_latency_p99_ms", -1],
  ["acked, tuples/s", null, "acked_per_second", 1],
];

function figures(plan) {
  const value = (from, name) => (name && from ? from[name] : undefined);
  const cell = (from, to, better) => {
    if (to === undefined) return h("td", { class: "number soft" }, "–");
    const worse = from !== undefined && from !== null && to !== null && Math.abs(to - from) > 0.02 * Math.abs(from);
    return h("td", { class: `number ${worse ? ((to - from) * better > 0 ? "better" : "worse") : ""}` }, figure(to));
  };
  return h(
    "table",
    {},
    h("caption", {}, "What it brings"),
    h("thead", {}, h("tr", {}, h("th", {}, ""), ["measured before", "predicted", "measured after"].map((name) => h("th", { class: "number" }, name)))),
    h("tbody", {}, ROWS.map(([caption, predicted, measured, better]) => {
      const before = measured ? plan.measured_before[measured] : value(plan.predicted_before, predicted);
      return h("tr", {}, h("td", {}, caption), cell(undefined, before, better), cell(before, value(plan.predicted_after, predicted), better), cell(before, plan.measured_after ? value(plan.measured_after, measured) : undefined, better));
    })),
  );
}

const MOST_MOVES = 60;

function moves(plan, names) {
  const place = (slot) => (slot ? `${state.view ? shortHost(state.view, slot.host) : slot.host}:${slot.port}` : "no place");
  return h(
    "table",
    {},
    h("caption", {}, `New slots: ${count(plan.moves.length, "executor")}; workers restarted ${plan.restarted_workers}, ended ${plan.ended_workers}, kept ${plan.kept_workers}`),
    h("thead", {}, h("tr", {}, ["executor", "from", "to"].map((name) => h("th", {}, name)))),
    h(
      "tbody",
      {},
      plan.moves.slice(0, MOST_MOVES).map((move) => h("tr", {}, h("td", {}, plan.topologies.length > 1 ? `${names.get(move.topology) ?? move.topology}: ` : "", `${move.component} ${move.tasks}`), h("td", {}, place(move.source)), h("td", {}, place(move.target)))),
      plan.moves.length > MOST_MOVES && h("tr", {}, h("td", { colspan: 3, class: "soft" }, `and ${plan.moves.length - MOST_MOVES} more`)),
    ),
  );
}

let pictured = ""; // the plan whose picture was asked for last

async function showScene(view, plan) {
  pictured = plan.id;
  const scene = await get(`plans/${encodeURIComponent(plan.id)}/scene`, { cluster: state.cluster }).catch(() => null);
  const canvases = Object.fromEntries([...view.querySelectorAll("canvas[data-scene]")].map((canvas) => [canvas.dataset.scene, canvas]));
  if (!canvases.before || pictured !== plan.id) return;
  if (scene) drawScene(scene, canvases);
  else view.querySelector(".sides")?.replaceChildren(h("p", { class: "soft small" }, "The pictures follow when the pass that made the plan has ended; of plans from before a restart of the operator there are none."));
}
