// One executor as a glyph: colour = component, fill = CPU against limit, square = stateful, hatched = unknown.

import { needsRim } from "./palette.js";

const NEAR_LIMIT = 0.95;

/** `share`: CPU used by limit (or by demand where nobody holds it); null is unknown. */
export function drawGlyph(context, { x, y, radius }, look, share, colours, detail) {
  context.save();
  context.beginPath();
  outline(context, x, y, radius, look.stateful);
  context.fillStyle = colours.card;
  context.fill();
  context.save();
  context.clip();
  context.fillStyle = look.colour;
  context.globalAlpha = 0.22;
  context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  context.globalAlpha = 1;
  if (share === null) hatch(context, x, y, radius, look.colour);
  else {
    const filled = 2 * radius * Math.min(1, share);
    context.fillRect(x - radius, y + radius - filled, 2 * radius, filled);
  }
  if (detail && look.mark) drawMark(context, { x: x - radius, y: y - radius, wide: 2 * radius, high: 2 * radius }, look.mark, colours);
  context.restore();
  context.beginPath();
  outline(context, x, y, radius, look.stateful);
  context.lineWidth = 2;
  context.strokeStyle = look.colour;
  context.stroke();
  if (needsRim(look.colour, colours.card)) {
    context.beginPath();
    outline(context, x, y, radius + 1.3, look.stateful);
    context.lineWidth = 0.9;
    context.strokeStyle = colours.soft;
    context.stroke();
  }
  if (look.stateful && detail) {
    context.beginPath();
    outline(context, x, y, radius - 3.4, true);
    context.lineWidth = 1.1;
    context.strokeStyle = colours.card;
    context.stroke();
  }
  if (share !== null && share >= NEAR_LIMIT) warn(context, x, y, radius, colours);
  if (detail) letters(context, x, y, look.initials, colours);
  context.restore();
}

/** CPU used by what the executor is held to, else by what it is expected to need; null where either is unknown. */
export function shareOf(executor) {
  const most = executor.limit_millicores ?? executor.demand_millicores;
  return executor.cpu_used_millicores === null || !most ? null : executor.cpu_used_millicores / most;
}

function outline(context, x, y, radius, isSquare) {
  if (isSquare) context.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, 4);
  else context.arc(x, y, radius, 0, 2 * Math.PI);
}

function hatch(context, x, y, radius, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.beginPath();
  for (let at = -2 * radius; at <= 2 * radius; at += 5) {
    context.moveTo(x + at - radius, y + radius);
    context.lineTo(x + at + radius, y - radius);
  }
  context.stroke();
}

/** Tells components apart that share a colour: a bar across, a bar upright, a cross. */
export function drawMark(context, { x, y, wide, high }, number, colours) {
  const across = y + 0.22 * high, upright = x + 0.22 * wide;
  for (const [colour, thick] of [[colours.card, 4], [colours.text, 1.8]]) {
    context.fillStyle = colour; // dark within light, or the other way round: to be seen on every colour, full or empty
    if (number & 1) context.fillRect(x, across - thick / 2, wide, thick);
    if (number & 2) context.fillRect(upright - thick / 2, y, thick, high);
  }
}

function warn(context, x, y, radius, colours) {
  const cx = x + radius * 0.78, cy = y - radius * 0.78;
  context.beginPath();
  context.moveTo(cx, cy - 5.5);
  context.lineTo(cx + 5.5, cy + 4.5);
  context.lineTo(cx - 5.5, cy + 4.5);
  context.closePath();
  context.fillStyle = colours.bad;
  context.strokeStyle = colours.card;
  context.lineWidth = 1.5;
  context.fill();
  context.stroke();
}

function letters(context, x, y, text, colours) {
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = colours.card;
  context.globalAlpha = 0.85;
  context.strokeText(text, x, y + 0.5);
  context.globalAlpha = 1;
  context.fillStyle = colours.text;
  context.fillText(text, x, y + 0.5);
}
