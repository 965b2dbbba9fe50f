// A folded worker as a bar: each component's part of its executors, as on a glyph by colour, mark and letters.

import { drawMark } from "./glyph.js";
import { key, needsRim } from "./palette.js";
import { FONT, READABLE, text } from "./text.js";

const LETTERS = 9.5, LEAST_LETTERS = 8, LEAST_MARKED = 7; // in pixels of the screen

/** A folded worker: how many executors of which component, and how much of its limits it uses. */
export function drawShares(context, box, view, looks, colours, scale) {
  const counts = new Map();
  let used = 0, most = 0, known = true;
  for (const executor of view.executors) {
    if (executor.worker !== box.at) continue;
    const name = key(executor.topology, executor.component);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    const limit = executor.limit_millicores ?? executor.demand_millicores;
    if (executor.cpu_used_millicores === null || limit === null) known = false;
    used += executor.cpu_used_millicores ?? 0;
    most += limit ?? 0;
  }
  const total = view.workers[box.at].executors || 1;
  const detail = scale >= READABLE;
  const y = detail ? box.y + 20 : box.y + 6, high = detail ? 14 : box.high - 12;
  let x = box.x + 8;
  for (const [name, number] of counts) {
    const wide = ((box.wide - 16) * number) / total;
    drawPart(context, { x, y, wide: Math.max(0, wide - 1), high }, looks.get(name), colours, scale);
    x += wide;
  }
  if (!detail) return;
  const share = known && most ? `${Math.round((100 * used) / most)}% CPU` : "CPU unknown";
  text(context, `${total} executors`, box.x + 9, box.y + 43, `11px ${FONT}`, colours.soft);
  text(context, share, box.x + box.wide - 9, box.y + 43, `11px ${FONT}`, colours.soft, "right");
}

/** One component's part of a folded worker: its colour, and where there is room its mark and its letters. */
function drawPart(context, part, look, colours, scale) {
  context.fillStyle = look?.colour ?? colours.faint;
  context.fillRect(part.x, part.y, part.wide, part.high);
  if (!look) return;
  if (look.mark && part.wide * scale >= LEAST_MARKED) drawMark(context, part, look.mark, colours);
  if (needsRim(look.colour, colours.sunk)) {
    context.strokeStyle = colours.soft;
    context.lineWidth = 0.8 / scale;
    context.strokeRect(part.x, part.y, part.wide, part.high);
  }
  const size = Math.min(LETTERS / scale, part.high - 2);
  const font = `650 ${size}px ${FONT}`;
  context.font = font;
  if (size * scale < LEAST_LETTERS) return;
  const words = [look.initials, look.initials[0]].find((some) => context.measureText(some).width + 2 / scale <= part.wide);
  if (words) text(context, words, part.x + part.wide / 2, part.y + part.high / 2 + 0.5, font, colours.text, "center", colours.card, 2.2 / scale);
}
