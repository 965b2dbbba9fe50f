// Two or three pictures of one cluster side by side: a plan's before, after and difference.

import { sharp } from "./dom.js";
import { drawMap } from "./draw.js";
import { linesOf } from "./flows.js";
import { anchorOf, fitted, layOut } from "./layout.js";
import { looksOf, theme } from "./palette.js";

const MANY_EXECUTORS = 150;

/** `before` and `after` are views of the same executors. Draws onto canvases by name: before, after, difference. */
export function drawScene(scene, canvases) {
  const views = [scene.before, unmeasured(scene.after)];
  const moved = movedOf(...views);
  const folded = (view, at) => view.executors.length > MANY_EXECUTORS && !view.executors.some((one, number) => one.worker === at && moved.has(number));
  const { clientWidth, clientHeight } = canvases.before;
  if (!clientWidth) return;
  const aspect = clientWidth / clientHeight;
  const cards = views.map((view) => layOut(view, (at) => folded(view, at), aspect).card);
  const least = { wide: Math.max(...cards.map((card) => card.wide)), high: Math.max(...cards.map((card) => card.high)) };
  const [before, after] = views.map((view) => layers(view, layOut(view, (at) => folded(view, at), aspect, least)));
  paint(canvases.before, before, new Map([...moved].map((at) => [at, "leaves"])));
  paint(canvases.after, after, new Map([...moved].map((at) => [at, "arrives"])));
  paint(canvases.difference, { ...after, lines: [] }, new Map([...moved].map((at) => [at, "arrives"])), (context, colours) => arrows(context, before, after, moved, colours));
}

/** Positions of the executors that have another slot afterwards. Both views have the same executors in the same order. */
export function movedOf(before, after) {
  const slot = (view, at) => {
    const worker = view.workers[view.executors[at].worker];
    return worker ? `${view.supervisors[worker.supervisor].id}:${worker.port}` : "";
  };
  return new Set(after.executors.map((_, at) => at).filter((at) => slot(before, at) !== slot(after, at)));
}

/** What machines will use is nobody's measurement: no figure, rather than that of before. */
function unmeasured(view) {
  return { ...view, supervisors: view.supervisors.map((one) => ({ ...one, cpu_used_millicores: undefined })) };
}

function layers(view, layout) {
  const names = new Map(view.topologies.map((topology) => [topology.id, topology.name]));
  return { view, layout, lines: linesOf(view, layout), looks: looksOf(view), names };
}

function paint(canvas, scene, rings, more) {
  const { context, width, height } = sharp(canvas);
  const transform = fitted(scene.layout, width, height), colours = theme();
  drawMap(context, width, height, scene, { transform, selected: null, rings, phase: null, colours });
  if (!more) return;
  context.save();
  context.translate(transform.x, transform.y);
  context.scale(transform.scale, transform.scale);
  more(context, colours);
  context.restore();
}

/** From where an executor was to where it is: a ghost, and an arrow. */
function arrows(context, before, after, moved, colours) {
  for (const at of moved) {
    const from = anchorOf(before.view, before.layout, at), to = anchorOf(after.view, after.layout, at);
    if (!to) continue;
    context.strokeStyle = context.fillStyle = colours.accent;
    if (!from) continue;
    context.setLineDash([3, 3]);
    context.lineWidth = 1.6;
    context.beginPath();
    context.arc(from.x, from.y, 12, 0, 2 * Math.PI);
    context.stroke();
    context.setLineDash([]);
    const [dx, dy] = [to.x - from.x, to.y - from.y], far = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / far, dy / far];
    const end = { x: to.x - ux * 20, y: to.y - uy * 20 };
    const bend = { x: (from.x + to.x) / 2 - dy * 0.1, y: (from.y + to.y) / 2 + dx * 0.1 };
    context.lineWidth = 2.2;
    context.beginPath();
    context.moveTo(from.x + ux * 13, from.y + uy * 13);
    context.quadraticCurveTo(bend.x, bend.y, end.x, end.y);
    context.stroke();
    const angle = Math.atan2(end.y - bend.y, end.x - bend.x);
    context.beginPath();
    context.moveTo(end.x + 8 * Math.cos(angle), end.y + 8 * Math.sin(angle));
    context.lineTo(end.x + 8 * Math.cos(angle + 2.4), end.y + 8 * Math.sin(angle + 2.4));
    context.lineTo(end.x + 8 * Math.cos(angle - 2.4), end.y + 8 * Math.sin(angle - 2.4));
    context.fill();
  }
}
