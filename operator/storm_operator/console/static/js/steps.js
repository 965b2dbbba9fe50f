// Where keys lead on the map: beside what is selected, up to what holds it, and into it.

import { boxOf } from "./draw.js";
import { centreOf } from "./layout.js";

/** The nearest in that direction: of supervisors where one is selected, else of executors, workers and empty
 *  supervisors. From nowhere the first of all; null where there is nothing farther on. */
export function nextTo(scene, selected, dx, dy) {
  const { layout, view } = scene;
  const here = selected && boxOf(layout, selected);
  const all = [...layout.executors.filter(Boolean), ...layout.workers, ...layout.supervisors.filter((box) => !view.supervisors[box.at].workers)];
  if (!here) return all[0] ?? null;
  const from = centreOf(here);
  let best = null, least = Infinity;
  for (const box of selected.kind === "supervisor" ? layout.supervisors : all) {
    const to = centreOf(box), along = (to.x - from.x) * dx + (to.y - from.y) * dy;
    const aside = Math.abs((to.x - from.x) * dy) + Math.abs((to.y - from.y) * dx);
    if (along > 4 && along + 2.5 * aside < least) [best, least] = [box, along + 2.5 * aside];
  }
  return best;
}

/** An executor's worker, a worker's supervisor; from nowhere the first supervisor. */
export function holderOf({ layout, view }, selected) {
  if (!selected) return layout.supervisors[0] ?? null;
  if (selected.kind === "executor") return layout.workers[view.executors[selected.at].worker] ?? null;
  return selected.kind === "worker" ? layout.supervisors[view.workers[selected.at].supervisor] : null;
}

/** A supervisor's first worker, an unfolded worker's first executor. */
export function firstInside({ layout, view }, selected) {
  if (selected?.kind === "supervisor") return layout.workers[view.workers.findIndex((worker) => worker.supervisor === selected.at)] ?? null;
  if (selected?.kind === "worker") return layout.executors.find((box) => box && view.executors[box.at].worker === selected.at) ?? null;
  return null;
}
