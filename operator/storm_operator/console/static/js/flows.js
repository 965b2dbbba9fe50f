// Which flows the map shows as which lines: between executors, or between workers where those are folded or many.

import { anchorOf, centreOf } from "./layout.js";

const MOST_EXECUTOR_LINES = 400;

/** Lines {from, to, rate, level, source, target}, lightest first so that heavy ones lie on top. Levels: "inside" a
 *  worker, "between" workers of one supervisor, "crossing" supervisors. `source` and `target` are positions of
 *  executors, or of workers where `folded`. */
export function linesOf(view, layout) {
  const flows = view.traffic.executor_flows;
  const anyFolded = layout.workers.some((worker) => worker.folded);
  const lines = anyFolded || flows.length > MOST_EXECUTOR_LINES ? foldedLines(view, layout) : executorLines(view, layout, flows);
  return lines.filter((line) => line.from && line.to).sort((a, b) => order(a) - order(b));
}

function order(line) {
  return (line.level === "crossing" ? 1e12 : line.level === "between" ? 1e9 : 0) + line.rate;
}

function executorLines(view, layout, flows) {
  return flows.map((flow) => {
    const [source, target] = [view.executors[flow.source].worker, view.executors[flow.target].worker];
    return {
      from: anchorOf(view, layout, flow.source),
      to: anchorOf(view, layout, flow.target),
      rate: flow.tuples_per_second,
      level: levelOf(view, source, target),
      source: flow.source,
      target: flow.target,
      folded: false,
    };
  });
}

function foldedLines(view, layout) {
  return view.traffic.worker_flows.map((flow) => ({
    from: centreOf(layout.workers[flow.source]),
    to: centreOf(layout.workers[flow.target]),
    rate: flow.tuples_per_second,
    level: levelOf(view, flow.source, flow.target),
    source: flow.source,
    target: flow.target,
    folded: true,
  }));
}

export const LEVELS = { inside: "in one worker", between: "between workers", crossing: "between supervisors" };

function levelOf(view, source, target) {
  if (source === target || source === null || target === null) return "inside";
  return view.workers[source].supervisor === view.workers[target].supervisor ? "between" : "crossing";
}

export const MOST_LINES = 60;
const FEW_LINES = 150;

/** All lines where they are few; of many the heaviest that cross supervisors, or all of what is selected. */
export function linesToDraw(scene, selected) {
  if (scene.lines.length <= FEW_LINES) return scene.lines;
  if (selected) return scene.lines.filter((line) => concerns(line, selected, scene.view));
  return scene.lines.filter((line) => line.level === "crossing").slice(-MOST_LINES);
}

/** Tuples per second at all levels together; null where they are unknown. */
export function allTraffic({ in_worker_tuples_per_second: inside, between_workers_tuples_per_second: between, between_supervisors_tuples_per_second: crossing }) {
  return inside === null || between === null || crossing === null ? null : inside + between + crossing;
}

/** Tuples per second that each supervisor exchanges with others, by position; null where they are unknown. */
export function crossingOf(view) {
  const unknown = supervisorsUnmeasured(view), sums = view.supervisors.map((_, at) => (unknown.has(at) ? null : 0));
  for (const { source, target, tuples_per_second: rate } of view.traffic.supervisor_flows) {
    if (!unknown.has(source)) sums[source] += rate;
    if (!unknown.has(target)) sums[target] += rate;
  }
  return sums;
}

/** Ids of the topologies whose traffic is not all measured. */
export function topologiesUnmeasured(view) {
  return new Set(view.topologies.filter((topology) => topology.tuples_per_second === null).map((topology) => topology.id));
}

/** Positions of the supervisors whose traffic with others is not all measured. */
export function supervisorsUnmeasured(view) {
  const unknown = topologiesUnmeasured(view), alone = new Set(view.topologies.filter((one) => one.supervisors < 2).map((one) => one.id));
  return new Set(view.workers.filter((worker) => unknown.has(worker.topology) && !alone.has(worker.topology)).map((worker) => worker.supervisor));
}

/** Both directions of each pair of supervisors as one: {a, b, rate, roundTrip}, heaviest first; unknown rates (null) last. */
export function supervisorPairs(view) {
  const sums = new Map();
  for (const flow of view.traffic.supervisor_flows) {
    const [a, b] = [Math.min(flow.source, flow.target), Math.max(flow.source, flow.target)];
    const known = sums.get(`${a}-${b}`) ?? { a, b, rate: 0, roundTrip: flow.round_trip_ms };
    known.rate = known.rate === null || flow.tuples_per_second === null ? null : known.rate + flow.tuples_per_second;
    sums.set(`${a}-${b}`, known);
  }
  return [...sums.values()].sort((one, other) => other.rate - one.rate);
}

/** The middle of a line's curve. Each direction bends to its own side, so that there and back are two lines. */
export function bent({ from, to, level }) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const much = level === "inside" ? 0.06 : 0.14;
  return { x: (from.x + to.x) / 2 - dy * much, y: (from.y + to.y) / 2 + dx * much };
}

const STEPS = 24;

/** The one of `lines` that runs through a point of the map, or not farther from it than `most`; null where none does. */
export function lineAt(lines, x, y, most) {
  let best = null, least = most;
  for (const line of lines) {
    const bend = bent(line);
    const at = (t, axis) => (1 - t) ** 2 * line.from[axis] + 2 * t * (1 - t) * bend[axis] + t * t * line.to[axis];
    for (let step = 0; step < STEPS; step++) {
      const [t, next] = [step / STEPS, (step + 1) / STEPS];
      const far = fromSegment(x, y, at(t, "x"), at(t, "y"), at(next, "x"), at(next, "y"));
      if (far <= least) [best, least] = [line, far];
    }
  }
  return best;
}

function fromSegment(x, y, ax, ay, bx, by) {
  const [dx, dy] = [bx - ax, by - ay];
  const along = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - ax - along * dx, y - ay - along * dy);
}

/** All flows between executors, workers or supervisors (`kind`): {source, target, rate, level, roundTrip}, heaviest first; roundTrip is of supervisors alone. */
export function flowsBetween(view, kind) {
  const workerOf = (at) => (kind === "executor" ? view.executors[at].worker : at);
  const flows = view.traffic[`${kind}_flows`].map((flow) => ({
    source: flow.source,
    target: flow.target,
    rate: flow.tuples_per_second,
    level: kind === "supervisor" ? "crossing" : levelOf(view, workerOf(flow.source), workerOf(flow.target)),
    roundTrip: flow.round_trip_ms,
  }));
  return flows.sort((a, b) => b.rate - a.rate || a.source - b.source || a.target - b.target);
}

/** Does the line concern what is selected? */
export function concerns(line, selected, view) {
  if (!selected) return false;
  const workerOf = (at) => (line.folded ? at : view.executors[at].worker);
  const ends = [line.source, line.target];
  if (selected.kind === "executor") {
    return line.folded ? ends.includes(view.executors[selected.at].worker) : ends.includes(selected.at);
  }
  if (selected.kind === "worker") return ends.some((at) => workerOf(at) === selected.at);
  return ends.some((at) => workerOf(at) !== null && view.workers[workerOf(at)].supervisor === selected.at);
}
