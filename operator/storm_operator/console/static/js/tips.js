// What there is to say about one supervisor, worker or executor of a view.

import { h, pairs } from "./dom.js";
import { count, figure, milliseconds, percent } from "./format.js";
import { flowsBetween, LEVELS, supervisorsUnmeasured, topologiesUnmeasured } from "./flows.js";
import { shareOf } from "./glyph.js";
import { shortHost } from "./hosts.js";

export function nameOf(view, { kind, at }, names) {
  if (kind === "supervisor") return `Supervisor ${hostAt(view, at)}`;
  if (kind === "worker") {
    const worker = view.workers[at];
    return `Worker ${worker.port} of ${names.get(worker.topology) ?? worker.topology} on ${hostAt(view, worker.supervisor)}`;
  }
  const executor = view.executors[at];
  return `Executor ${executor.component} ${executor.tasks} of ${names.get(executor.topology) ?? executor.topology}`;
}

function hostAt(view, at) {
  return shortHost(view, view.supervisors[at].host);
}

/** [name, value] pairs, most important first. */
export function factsOf(view, { kind, at }) {
  if (kind === "supervisor") return factsOfSupervisor(view, view.supervisors[at], at);
  if (kind === "worker") return factsOfWorker(view, view.workers[at], at);
  return factsOfExecutor(view, view.executors[at], at);
}

function factsOfSupervisor(view, one, at) {
  const flows = view.traffic.supervisor_flows, unknown = supervisorsUnmeasured(view).has(at);
  const sum = (mine) => (unknown ? null : flows.filter(mine).reduce((total, flow) => total + flow.tuples_per_second, 0));
  return [
    ["CPU used", `${figure(one.cpu_used_millicores)} of ${figure(one.cpu_capacity_millicores)} m`],
    ["share", percent(one.cpu_used_millicores, one.cpu_capacity_millicores)],
    ["workers", `${one.workers} of ${one.slots} slots`],
    ["executors", String(one.executors)],
    ["sends to others", `${figure(sum((flow) => flow.source === at))}/s`],
    ["gets from others", `${figure(sum((flow) => flow.target === at))}/s`],
    ["availability", `${figure(100 * one.availability)}%`],
    ...(hostAt(view, at) === one.host ? [] : [["host", one.host]]),
    ...(one.is_leaving ? [["leaving", "nothing is placed here any more"]] : []),
  ];
}

function factsOfWorker(view, one) {
  return [
    ["supervisor", hostAt(view, one.supervisor)],
    ["port", String(one.port)],
    ["executors", String(one.executors)],
    ["CPU used", `${figure(one.cpu_used_millicores)} m`],
  ];
}

function factsOfExecutor(view, one, at) {
  const share = shareOf(one);
  const stateful = view.topologies.find((topology) => topology.id === one.topology)?.components.find((component) => component.name === one.component)?.stateful;
  const worker = one.worker === null ? null : view.workers[one.worker];
  const flows = view.traffic.executor_flows, unknown = topologiesUnmeasured(view).has(one.topology);
  const sent = unknown ? null : flows.filter((flow) => flow.source === at).reduce((total, flow) => total + flow.tuples_per_second, 0);
  const least = sent !== null && view.traffic.left_out_executor_flows > 0 ? "at least " : ""; // only the heaviest flows are known here
  return [
    ["state", stateful ? "stateful" : "stateless"],
    ["CPU used", `${figure(one.cpu_used_millicores)} m`],
    [one.limit_millicores === null ? "expected need" : "limit", `${figure(one.limit_millicores ?? one.demand_millicores)} m`],
    ["share of that", share === null ? "unknown" : `${Math.round(100 * share)}%`],
    ["executed", `${figure(one.executed_per_second)}/s`],
    ["sends", `${least}${figure(sent)}/s`],
    ["queue", one.queue_length === null ? "unknown" : count(Math.round(one.queue_length), "tuple")],
    ["at", worker === null ? "no place yet" : `${hostAt(view, worker.supervisor)}:${worker.port}`],
  ];
}

const MOST_FLOWS = 5;

/** The heaviest flows of what is selected, as sentences with their figures: [{words, rate, level}]. */
export function flowsOf(view, { kind, at }) {
  const own = flowsBetween(view, kind).filter((flow) => flow.source === at || flow.target === at);
  return own.slice(0, MOST_FLOWS).map((flow) => {
    const other = placeOf(view, kind, flow.source === at ? flow.target : flow.source);
    return { words: flow.source === flow.target ? "to itself" : `${flow.source === at ? "to" : "from"} ${other}`, rate: flow.rate, level: LEVELS[flow.level] };
  });
}

/** An end of a flow, in few words. */
export function placeOf(view, kind, at) {
  if (kind === "supervisor") return hostAt(view, at);
  if (kind === "worker") return `${hostAt(view, view.workers[at].supervisor)}:${view.workers[at].port}`;
  return `${view.executors[at].component} ${view.executors[at].tasks}`;
}

/** What a line of the map stands for. */
export function tipForLine(view, line) {
  const kind = line.folded ? "worker" : "executor";
  const pair = line.level === "crossing" && view.traffic.supervisor_flows.find((flow) => flow.source === supervisorOf(view, line, line.source) && flow.target === supervisorOf(view, line, line.target));
  return [
    h("b", {}, `Flow ${placeOf(view, kind, line.source)} → ${placeOf(view, kind, line.target)}`),
    pairs([["tuples", `${figure(line.rate)}/s`], ["level", LEVELS[line.level]], ...(pair ? [["round trip", milliseconds(pair.round_trip_ms)]] : [])]),
  ];
}

function supervisorOf(view, line, at) {
  return view.workers[line.folded ? at : view.executors[at].worker].supervisor;
}

export function tipFor(view, box, names) {
  return [h("b", {}, nameOf(view, box, names)), pairs(factsOf(view, box))];
}
