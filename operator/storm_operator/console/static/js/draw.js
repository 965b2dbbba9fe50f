// A laid-out view onto a canvas. What is drawn is the same for the live map and for a plan's before and after.

import { bent, concerns, crossingOf, linesToDraw, supervisorPairs } from "./flows.js";
import { short } from "./format.js";
import { drawGlyph, shareOf } from "./glyph.js";
import { shortHost } from "./hosts.js";
import { key } from "./palette.js";
import { drawShares } from "./shares.js";
import { clipped, FONT, READABLE, text } from "./text.js";

const WIDEST = 9;
const MOST_PILLS = 15;
const DASH = [5, 11];

/** `scene`: {view, layout, lines, looks, names}; `shown`: {transform, selected, rings, phase, colours}. */
export function drawMap(context, width, height, scene, shown) {
  const { transform, colours } = shown;
  context.clearRect(0, 0, width, height);
  context.save();
  context.translate(transform.x, transform.y);
  context.scale(transform.scale, transform.scale);
  const detail = transform.scale >= READABLE;
  const crossing = crossingOf(scene.view), most = crossing.reduce((one, other) => Math.max(one, other), 0);
  scene.layout.supervisors.forEach((box) => drawSupervisor(context, box, scene, shown, most ? crossing[box.at] / most : 0));
  scene.layout.workers.forEach((box) => drawWorker(context, box, scene, shown, detail));
  drawLines(context, scene, shown);
  scene.layout.supervisors.forEach((box) => drawSupervisorName(context, box, scene, shown));
  if (detail) scene.layout.workers.forEach((box) => drawWorkerName(context, box, scene, shown));
  scene.layout.executors.forEach((box) => box && drawExecutor(context, box, scene, shown, detail));
  if (!shown.bare) drawPills(context, scene, colours, transform.scale, shown.farPills ?? 0);
  if (shown.selected) drawFocus(context, boxOf(scene.layout, shown.selected), colours);
  context.restore();
}

export function boxOf(layout, selected) {
  return layout[`${selected.kind}s`][selected.at] ?? null;
}

function drawSupervisor(context, box, { view }, { colours, transform }, crossing) {
  const supervisor = view.supervisors[box.at];
  context.beginPath();
  context.roundRect(box.x, box.y, box.wide, box.high, 14);
  context.globalAlpha = supervisor.workers ? 1 : 0.6;
  context.fillStyle = colours.card;
  context.fill();
  context.strokeStyle = colours.strong;
  context.lineWidth = 1.3;
  context.setLineDash(supervisor.workers ? [] : [5, 5]);
  context.stroke();
  context.setLineDash([]);
  if (crossing) {
    context.fillStyle = colours.crossing;
    context.fillRect(box.x + 13, box.y + 40, (box.wide - 26) * crossing, 2.5);
  }
  drawCpu(context, box.x + 13, box.y + 32, box.wide - 26, supervisor.cpu_used_millicores, supervisor.cpu_capacity_millicores, colours);
  if (!supervisor.workers && transform.scale > 0.4) {
    text(context, supervisor.is_leaving ? "empty" : `empty · ${supervisor.slots} free slots`, box.x + box.wide / 2, box.y + box.high / 2 + 16, `12.5px ${FONT}`, colours.soft, "center");
  }
  context.globalAlpha = 1;
}

/** Names lie above the lines: what a line runs across must still be readable. */
function drawSupervisorName(context, box, { view }, { colours, transform }) {
  const supervisor = view.supervisors[box.at];
  const size = Math.min(22, Math.max(13.5, 9.5 / transform.scale));
  const used = supervisor.cpu_used_millicores, all = supervisor.cpu_capacity_millicores;
  const cpu = used === undefined ? "" : used === null || !all ? "CPU unknown" : `${Math.round((100 * used) / all)}%`;
  const right = [supervisor.is_leaving && "leaving", cpu].filter(Boolean).join(" · ");
  const font = `650 ${size}px ${FONT}`, halo = colours.card;
  text(context, right, box.x + box.wide - 13, box.y + 19, `600 ${size - 1}px ${FONT}`, colours.soft, "right", halo);
  const room = box.wide - 34 - context.measureText(right).width;
  text(context, clipped(context, shortHost(view, supervisor.host), room, font), box.x + 13, box.y + 19, font, supervisor.workers ? colours.text : colours.soft, "left", halo);
}

function drawWorkerName(context, box, { view, names }, { colours }) {
  const worker = view.workers[box.at];
  const port = String(worker.port), halo = colours.sunk;
  text(context, port, box.x + box.wide - 9, box.y + 12, `11px ${FONT}`, colours.faint, "right", halo);
  const room = box.wide - 24 - context.measureText(port).width;
  const font = `600 11.5px ${FONT}`;
  text(context, clipped(context, names.get(worker.topology) ?? worker.topology, room, font), box.x + 9, box.y + 12, font, colours.soft, "left", halo);
}

function drawCpu(context, x, y, wide, used, all, colours) {
  context.beginPath();
  context.roundRect(x, y, wide, 6, 3);
  context.fillStyle = colours.line;
  context.fill();
  if (used === undefined || used === null || !all) return;
  const share = Math.min(1, used / all);
  context.beginPath();
  context.roundRect(x, y, Math.max(6, wide * share), 6, 3);
  context.fillStyle = share >= 0.9 ? colours.bad : colours.accent;
  context.fill();
}

function drawWorker(context, box, { view, looks }, { colours, transform }, detail) {
  context.beginPath();
  context.roundRect(box.x, box.y, box.wide, box.high, 9);
  context.fillStyle = colours.sunk;
  context.fill();
  context.strokeStyle = colours.line;
  context.lineWidth = 1.2;
  context.stroke();
  if (box.folded) drawShares(context, box, view, looks, colours, transform.scale);
}

function drawExecutor(context, box, { view, looks }, { colours, selected, rings }, detail) {
  const executor = view.executors[box.at];
  const look = looks.get(key(executor.topology, executor.component));
  context.globalAlpha = rings && !rings.has(box.at) ? 0.35 : 1;
  drawGlyph(context, box, look, shareOf(executor), colours, detail);
  context.globalAlpha = 1;
  if (rings?.has(box.at)) ring(context, box, colours.accent, rings.get(box.at) === "leaves");
  if (selected?.kind === "executor" && selected.at === box.at) ring(context, box, colours.accent, false);
}

export function ring(context, box, colour, dashed) {
  context.beginPath();
  context.arc(box.x, box.y, box.radius + 5, 0, 2 * Math.PI);
  context.setLineDash(dashed ? [4, 3] : []);
  context.strokeStyle = colour;
  context.lineWidth = 2.4;
  context.stroke();
  context.setLineDash([]);
}

function drawLines(context, scene, { colours, selected, phase, bare }) {
  const lines = linesToDraw(scene, selected);
  const heaviest = lines.reduce((most, line) => Math.max(most, line.rate), 1);
  const finer = lines.length > 40 ? 0.6 : 1;
  for (const line of lines) {
    const own = concerns(line, selected, scene.view);
    const strength = Math.sqrt(line.rate / heaviest);
    const crossing = line.level === "crossing";
    context.globalAlpha = selected && !own ? 0.08 : crossing ? 0.5 + 0.4 * strength : own ? 0.85 : 0.3 + 0.3 * strength;
    context.strokeStyle = crossing ? colours.crossing : colours.inside;
    context.lineWidth = Math.max(crossing ? 1.4 : 0.6, WIDEST * finer * strength * (crossing ? 1 : 0.45));
    const bend = bent(line);
    stroke(context, line, bend);
    if (crossing && phase !== null && !bare) pulse(context, line, bend, phase, colours);
    if (own || (crossing && strength > 0.12)) arrow(context, line, bend, context.lineWidth);
  }
  context.globalAlpha = 1;
}

function stroke(context, { from, to }, bend) {
  context.beginPath();
  context.moveTo(from.x, from.y);
  context.quadraticCurveTo(bend.x, bend.y, to.x, to.y);
  context.stroke();
}

function pulse(context, line, bend, phase, colours) {
  context.save();
  context.setLineDash(DASH);
  context.lineDashOffset = -phase * (DASH[0] + DASH[1]);
  context.strokeStyle = colours.card;
  context.globalAlpha = 0.6;
  context.lineWidth = Math.max(0.8, context.lineWidth * 0.25);
  stroke(context, line, bend);
  context.restore();
}

function arrow(context, { from, to }, bend, wide) {
  const t = 0.6, u = 1 - t;
  const x = u * u * from.x + 2 * u * t * bend.x + t * t * to.x;
  const y = u * u * from.y + 2 * u * t * bend.y + t * t * to.y;
  const angle = Math.atan2(u * (bend.y - from.y) + t * (to.y - bend.y), u * (bend.x - from.x) + t * (to.x - bend.x));
  const size = 4 + wide;
  context.beginPath();
  context.moveTo(x + size * Math.cos(angle), y + size * Math.sin(angle));
  context.lineTo(x + size * Math.cos(angle + 2.5), y + size * Math.sin(angle + 2.5));
  context.lineTo(x + size * Math.cos(angle - 2.5), y + size * Math.sin(angle - 2.5));
  context.closePath();
  context.fillStyle = context.strokeStyle;
  context.fill();
}

/** The traffic between each pair of supervisors, in figures, half-way between them; from afar that of the heaviest. */
function drawPills(context, { view, layout }, colours, scale, farPills) {
  const isNear = scale >= READABLE, unit = isNear ? 1 : READABLE / scale;
  for (const pair of supervisorPairs(view).slice(0, isNear ? MOST_PILLS : farPills)) {
    const [a, b] = [layout.supervisors[pair.a], layout.supervisors[pair.b]];
    const x = (a.x + b.x + a.wide) / 2, y = (a.y + b.y + a.high) / 2;
    const words = isNear ? `${short(pair.rate)}/s · ${short(pair.roundTrip)} ms` : `${short(pair.rate)}/s`;
    const font = `600 ${(isNear ? 11.5 : 16) * unit}px ${FONT}`;
    context.font = font;
    const wide = context.measureText(words).width + 18 * unit;
    context.beginPath();
    context.roundRect(x - wide / 2, y - 11 * unit, wide, 22 * unit, 11 * unit);
    context.fillStyle = colours.card;
    context.fill();
    context.strokeStyle = colours.crossing;
    context.lineWidth = 1.4 * unit;
    context.stroke();
    text(context, words, x, y, font, colours.crossing, "center");
  }
}

function drawFocus(context, box, colours) {
  if (!box || box.kind === "executor") return;
  context.beginPath();
  context.roundRect(box.x - 3, box.y - 3, box.wide + 6, box.high + 6, 13);
  context.strokeStyle = colours.accent;
  context.lineWidth = 2.4;
  context.stroke();
}
