// What the page knows, and how it keeps up: asks for the clusters' numbers every second, and for what has become new.

import { get } from "./api.js";
import { foundAgain } from "./selection.js";

const ASK_EVERY_MS = 1000;
const KEPT_SECONDS = 43_200;
const MOST_POINTS = 1500;
const QUIET_PERIODS = 3, QUIET_SECONDS = 30;

export const state = {
  instance: null,
  clusters: [],
  cluster: null,
  life: null,
  approval: "off",
  trouble: "",
  lost: false,
  quietSince: null,
  live: null,
  view: null,
  at: null,
  points: [],
  loads: [],
  plans: [],
  heldResizes: {},
  passes: 0,
  planChanges: -1,
  tab: "map",
  selected: null,
  plan: null,
};

const listeners = [];

/** `listener(what)` is called after each change with a set of its kinds: view, points, plans, clusters, tab, selected. */
export function onChange(listener) {
  listeners.push(listener);
}

export function changed(...kinds) {
  const what = new Set(kinds);
  for (const listener of listeners) listener(what);
}

/** Follow the operator for as long as the page is open. */
export async function follow() {
  for (;;) {
    await step();
    await new Promise((resume) => setTimeout(resume, document.hidden ? 5 * ASK_EVERY_MS : ASK_EVERY_MS));
  }
}

async function step() {
  try {
    await look();
    if (state.lost) {
      state.lost = false;
      changed("clusters");
    }
  } catch (error) {
    if (!state.lost || state.trouble !== error.message) {
      state.lost = true;
      state.trouble = error.message;
      changed("clusters");
    }
  }
}

async function look() {
  const answer = await get("clusters");
  const names = answer.clusters.map((cluster) => cluster.name);
  const cluster = names.includes(state.cluster) ? state.cluster : names[0] ?? null;
  const another = answer.instance !== state.instance || cluster !== state.cluster;
  const news = state.trouble !== answer.trouble || names.join() !== state.clusters.join();
  if (another) forget();
  Object.assign(state, { instance: answer.instance, clusters: names, cluster, approval: answer.approval, trouble: answer.trouble });
  if (another) changed("clusters", "view", "points", "plans");
  else if (news) changed("clusters");
  const entry = answer.clusters.find((cluster) => cluster.name === state.cluster);
  if (entry) {
    if (entry.life !== state.life) beginAnew(entry.life);
    if (!(await catchUp(entry))) return;
    hear(entry.held_resizes);
    listen(entry);
  }
}

/** A cluster that was let go and is managed again counts its passes from one: what was known of it is of another life. */
function beginAnew(life) {
  forget();
  state.life = life;
  changed("view", "points", "plans");
}

/** They come after the pass that they are about. */
function hear(heldResizes) {
  if (JSON.stringify(heldResizes) === JSON.stringify(state.heldResizes)) return;
  state.heldResizes = heldResizes;
  changed("view");
}

let newsAt = Date.now(), newest = null;

/** Passes come once a period. By this machine's clock, since that of a simulation is another; what was there when the page
 * was opened is as old as the operator says. */
function listen(entry) {
  const news = `${state.instance} ${state.cluster} ${entry.passes}`;
  if (news !== newest) [newest, newsAt] = [news, Date.now() - 1000 * (entry.pass_age_seconds ?? 0)];
  const quiet = Date.now() - newsAt > 1000 * Math.max(QUIET_SECONDS, QUIET_PERIODS * entry.period_seconds);
  const since = quiet ? newsAt : null;
  if (since !== state.quietSince) {
    state.quietSince = since;
    changed("clusters");
  }
}

/** Whether the answers were taken in. They go on from the points that were there when they were asked for: where others
 * are there meanwhile, of another cluster or by another step, they are left to the next step. */
async function catchUp(entry) {
  const cluster = state.cluster, before = state.points;
  const kinds = [];
  const since = state.passes || null;
  const passed = entry.passes > state.passes;
  const plansChanged = entry.plan_changes !== state.planChanges || entry.passes !== state.passes;
  const [plans, live, history, forecasts] = await Promise.all([
    plansChanged && get("plans", { cluster }),
    plansChanged && entry.passes > 0 && get("view", { cluster }),
    passed && get("history", { cluster, since }),
    passed && get("forecasts", { cluster, since }),
  ]);
  if (state.points !== before) return false;
  if (plans) {
    state.plans = plans.plans;
    state.planChanges = entry.plan_changes;
    kinds.push("plans");
  }
  if (passed) {
    state.points = trimmed([...state.points, ...history.passes]);
    state.loads = trimmed([...state.loads, ...forecasts.passes]);
    state.passes = state.points.at(-1)?.number ?? 0;
    kinds.push("points");
  }
  if (live) {
    state.live = live;
    if (state.at === null) show(live);
    kinds.push("view");
  }
  if (kinds.length) changed(...kinds);
  return true;
}

/** Too old ones go; of too many every second one of the older half. */
function trimmed(points) {
  const newest = points.at(-1)?.at_seconds ?? 0;
  const kept = points.filter((point) => newest - point.at_seconds <= KEPT_SECONDS);
  const half = kept.length / 2;
  return kept.length <= MOST_POINTS ? kept : kept.filter((_, at) => at >= half || at % 2 === 0);
}

function forget() {
  Object.assign(state, { quietSince: null, live: null, view: null, at: null, points: [], loads: [], plans: [], heldResizes: {}, passes: 0, planChanges: -1, selected: null, plan: null });
}

export function chooseCluster(name) {
  forget();
  state.cluster = name;
  changed("clusters", "view", "points", "plans");
  step();
}

function show(view) {
  state.selected = foundAgain(state.selected, state.view, view);
  state.view = view;
}

/** Show the cluster as it was at that time; null: as it is. */
export async function goTo(seconds) {
  state.at = seconds;
  if (seconds === null) {
    show(state.live);
    changed("view", "at");
    return;
  }
  changed("at");
  const view = await get("view", { cluster: state.cluster, at: seconds + 0.001 }).catch(() => null);
  if (view && state.at === seconds) {
    show(view);
    changed("view");
  }
}

export function select(selected) {
  state.selected = selected;
  changed("selected");
}

export function showTab(tab) {
  state.tab = tab;
  changed("tab");
}

/** The operator has answered, and has none. */
export function hasNoCluster() {
  return state.instance !== null && state.cluster === null;
}

export function topologyNames() {
  return new Map((state.view?.topologies ?? []).map((topology) => [topology.id, topology.name]));
}
