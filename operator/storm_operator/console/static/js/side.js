// Beside the map: the topologies with their last decision, what is selected, and the key to the map.

import { get } from "./api.js";
import { h, pairs, refill } from "./dom.js";
import { drawGlyph } from "./glyph.js";
import { allTraffic } from "./flows.js";
import { clockTime, count, figure, percent, readable, words } from "./format.js";
import { gradeOf, looksOf, theme } from "./palette.js";
import { select, state, topologyNames } from "./state.js";
import { factsOf, flowsOf, nameOf } from "./tips.js";

export function renderSide(side, dialog) {
  const view = state.view;
  if (!view) return refill(side);
  const names = topologyNames();
  refill(
    side,
    state.selected && h("section", {}, h("h2", {}, "Selected"), selectedCard(view, names)),
    h("section", {}, h("h2", {}, "Topologies"), view.topologies.map((topology) => topologyCard(topology, view, dialog)), !view.topologies.length && h("p", { class: "soft" }, view.measured_at_seconds === null ? "The cluster has not been seen yet." : "None runs.")),
    view.problems.length > 0 && h("section", {}, h("h2", {}, "What is missing"), h("ul", { class: "small" }, view.problems.slice(0, 6).map((problem) => h("li", {}, problem)))),
    view.refused.length > 0 && h("section", {}, h("h2", {}, "Not managed, or not as described"), h("ul", { class: "small" }, view.refused.map((why) => h("li", {}, why)))),
    h("section", {}, h("h2", {}, "Traffic"), traffic(view.traffic)),
    h("section", {}, h("h2", {}, "Key"), ...legend(view)),
  );
  paintChips(side);
}

function selectedCard(view, names) {
  return h("div", { class: "topology" }, h("div", {}, h("h3", {}, nameOf(view, state.selected, names)), h("button", { class: "quiet", "data-key": "unselect", "aria-label": "Select nothing", onclick: () => select(null) }, "×")), pairs(factsOf(view, state.selected)), heaviest(flowsOf(view, state.selected)));
}

function heaviest(flows) {
  if (!flows.length) return h("p", { class: "reason" }, "No flow is measured.");
  return [h("h4", {}, "Heaviest flows"), h("ul", { class: "flows small" }, flows.map((flow) => h("li", {}, h("span", {}, flow.words, h("span", { class: "soft" }, ` ${flow.level}`)), h("b", {}, `${figure(flow.rate)}/s`))))];
}

/** That nothing is managed is none about a topology that is there: it is told what any other is that is not. */
export function decisionAbout(view, topologyId) {
  const ofAll = view.decisions.find((one) => !one.topologies.length && one.reason !== "NothingToManage");
  return view.decisions.find((one) => one.topologies.includes(topologyId)) ?? ofAll ?? null;
}

function topologyCard(topology, view, dialog) {
  const decision = decisionAbout(view, topology.id), isPaused = view.paused.includes(topology.name);
  return h(
    "div",
    { class: "topology", "data-topology": topology.name },
    h("div", {}, h("h3", {}, topology.name), decisionPill(decision, isPaused)),
    pairs([
      ["latency p50 · p99", `${figure(topology.latency_p50_ms)} · ${figure(topology.latency_p99_ms)} ms`],
      ["acked · failed", `${figure(topology.acked_per_second)} · ${figure(topology.failed_per_second)} /s`],
      ["crosses supervisors", `${percent(topology.inter_supervisor_tuples_per_second, topology.tuples_per_second)}`],
      ["runs in", `${count(topology.workers, "worker")}, ${count(topology.supervisors, "supervisor")}`],
    ]),
    decision && h("p", { class: "reason" }, readable(decision.message)),
    heldResize(topology),
    h("button", { class: "link small", "data-key": `why-${topology.id}`, onclick: () => explain(topology, dialog) }, "Why?"),
  );
}

/** What the load asks for beyond placement, and does not get now; of the past nobody knows. */
function heldResize({ id }) {
  const held = state.at === null && state.heldResizes[id];
  return held && h("p", { class: "reason held-resize" }, h("span", { class: "pill warn" }, words(held.reason)), ` ${readable(held.message)}`);
}

export function decisionPill(decision, isPaused = false) {
  if (!decision) return h("span", { class: "pill" }, isPaused ? "paused" : "not managed");
  if (decision.kind === "plan") return planPill(state.plans.find((plan) => plan.id === decision.plan_id));
  return h("span", { class: `pill ${gradeOf(decision.reason)}` }, words(decision.reason));
}

function planPill(plan) {
  return plan?.waits_for_approval ? h("span", { class: "pill warn" }, "plan waits for approval") : h("span", { class: "pill accent" }, "plan");
}

async function explain(topology, dialog) {
  const found = await get(`topologies/${encodeURIComponent(topology.id)}/explanation`, { cluster: state.cluster }).catch((error) => ({ headline: error.message, parts: [] }));
  dialog.replaceChildren(
    h("button", { class: "close", onclick: () => dialog.close() }, "Close"),
    h("h3", {}, `Why: ${topology.name}`),
    h("p", {}, found.headline),
    found.at_seconds && h("p", { class: "soft small" }, `as of ${clockTime(found.at_seconds)}`) || "",
    ...found.parts.flatMap((part) => [h("h4", {}, part.title), ...part.sentences.map((sentence) => h("p", {}, sentence))]),
  );
  dialog.showModal();
}

function traffic(one) {
  const all = allTraffic(one);
  const row = (value) => (value === null ? "unknown" : `${figure(value)}/s · ${percent(value, all)}`);
  return pairs([
    ["in one worker", row(one.in_worker_tuples_per_second)],
    ["between workers", row(one.between_workers_tuples_per_second)],
    [h("span", { class: "crossing" }, "between supervisors"), row(one.between_supervisors_tuples_per_second)],
    one.left_out_executor_flows > 0 ? ["not drawn", `${figure(one.left_out_executor_flows)} light flows`] : ["", ""],
  ]);
}

const SAMPLES = [
  ["stateless", { words: "stateless", share: 0, stateful: false }],
  ["stateful", { words: "stateful", share: 0, stateful: true }],
  ["filled", { words: "60% of its CPU limit", share: 0.6, stateful: false }],
  ["full", { words: "at its limit", share: 1, stateful: false }],
  ["unknown", { words: "CPU unknown", share: null, stateful: false }],
];

function legend(view) {
  const looks = looksOf(view);
  const several = view.topologies.length > 1;
  const chips = view.topologies.flatMap((topology) => topology.components.map((component) => h("span", { class: "chip" }, h("canvas", { "data-look": `${topology.id}/${component.name}` }), several ? `${topology.name}: ${component.name}` : component.name)));
  return [
    h("div", { class: "chips" }, looks.size > 40 ? h("span", { class: "soft" }, `${looks.size} components`) : chips),
    h("div", { class: "chips key" }, SAMPLES.map(([name, sample]) => h("span", { class: "chip" }, h("canvas", { "data-sample": name }), sample.words))),
    h("div", { class: "chips key" }, h("span", { class: "chip" }, h("i", { class: "key-line" }), "tuples/s"), h("span", { class: "chip" }, h("i", { class: "key-line thick" }), "between supervisors"), h("span", { class: "chip" }, "line under a supervisor's CPU: the longer, the more of that it sends and gets")),
  ];
}

function paintChips(side) {
  const looks = looksOf(state.view), colours = theme();
  for (const canvas of side.querySelectorAll("canvas[data-look]")) {
    canvas.width = canvas.height = 40;
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    drawGlyph(context, { x: 10, y: 10, radius: 7.5 }, looks.get(canvas.dataset.look), 0.75, colours, false);
  }
  for (const [name, { share, stateful }] of SAMPLES) {
    const canvas = side.querySelector(`canvas[data-sample="${name}"]`);
    canvas.width = canvas.height = 40;
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    drawGlyph(context, { x: 10, y: 10, radius: 7.5 }, { colour: colours.soft, mark: 0, stateful }, share, colours, false);
  }
}
