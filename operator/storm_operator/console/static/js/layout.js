// Where everything is on the map: a view in, boxes out, in units of the map's own. No drawing here.

const CELL = { wide: 34, high: 36 };
const RADIUS = 13;
const WORKER = { pad: 8, head: 22, wide: 128, foldedHigh: 52, gap: 10 };
const CARD = { pad: 12, head: 50, wide: 210, high: 112 };
const GAP = { few: 78, many: 30 };
const FEW = 12;

/**
 * `isFolded(worker position)`; `aspect`: width by height of where it is to be shown; `least`: {wide, high} of a
 * supervisor's card, so that two pictures of one cluster have everything at the same place.
 */
export function layOut(view, isFolded, aspect, least = CARD) {
  const held = executorsOfWorkers(view);
  const cards = view.supervisors.map((_, at) => packed(workersOf(view, at), held, isFolded));
  const card = {
    wide: Math.max(least.wide, CARD.wide, ...cards.map((one) => one.wide + 2 * CARD.pad)),
    high: Math.max(least.high, CARD.high, ...cards.map((one) => one.high + CARD.head + CARD.pad)),
  };
  const gap = view.supervisors.length <= FEW ? GAP.few : GAP.many;
  const columns = bestColumns(view.supervisors.length, card, gap, aspect);
  const layout = { card, gap, supervisors: [], workers: [], executors: new Array(view.executors.length).fill(null) };
  cards.forEach((one, at) => {
    const x = gap / 2 + (at % columns) * (card.wide + gap);
    const y = gap / 2 + Math.floor(at / columns) * (card.high + gap);
    layout.supervisors.push({ kind: "supervisor", at, x, y, wide: card.wide, high: card.high });
    for (const box of one.boxes) placeWorker(layout, held, box, x + CARD.pad + box.x, y + CARD.head + box.y);
  });
  const rows = Math.ceil(view.supervisors.length / columns);
  layout.wide = columns * (card.wide + gap);
  layout.high = rows * (card.high + gap);
  return layout;
}

function placeWorker(layout, held, box, x, y) {
  layout.workers[box.at] = { kind: "worker", at: box.at, x, y, wide: box.wide, high: box.high, folded: box.folded };
  if (box.folded) return;
  held[box.at].forEach((executor, number) => {
    const cx = x + WORKER.pad + CELL.wide * ((number % box.columns) + 0.5);
    const cy = y + WORKER.head + CELL.high * (Math.floor(number / box.columns) + 0.5) - 2;
    layout.executors[executor] = { kind: "executor", at: executor, x: cx, y: cy, radius: RADIUS };
  });
}

function executorsOfWorkers(view) {
  const held = view.workers.map(() => []);
  view.executors.forEach((executor, at) => executor.worker !== null && held[executor.worker].push(at));
  return held;
}

function workersOf(view, supervisor) {
  return view.workers.flatMap((worker, at) => (worker.supervisor === supervisor ? [at] : []));
}

/** The workers of one supervisor in rows, as square as they go. */
function packed(workers, held, isFolded) {
  const sizes = workers.map((at) => sizeOf(at, held[at].length, isFolded(at)));
  const columns = Math.max(1, Math.ceil(Math.sqrt(workers.length * 0.75)));
  const boxes = [];
  let y = 0, wide = 0;
  for (let start = 0; start < sizes.length; start += columns) {
    const row = sizes.slice(start, start + columns);
    let x = 0;
    for (const size of row) {
      boxes.push({ ...size, x, y });
      x += size.wide + WORKER.gap;
    }
    wide = Math.max(wide, x - WORKER.gap);
    y += Math.max(...row.map((size) => size.high)) + WORKER.gap;
  }
  return { boxes, wide, high: Math.max(0, y - WORKER.gap) };
}

function sizeOf(at, executors, folded) {
  if (folded) return { at, folded, wide: WORKER.wide, high: WORKER.foldedHigh };
  const columns = Math.max(1, Math.ceil(Math.sqrt(executors * 1.6)));
  const rows = Math.ceil(executors / columns);
  const wide = Math.max(WORKER.wide, columns * CELL.wide + 2 * WORKER.pad);
  return { at, folded, columns: Math.floor((wide - 2 * WORKER.pad) / CELL.wide), wide, high: WORKER.head + rows * CELL.high + 4 };
}

function bestColumns(number, card, gap, aspect) {
  let best = 1, bestScale = 0;
  for (let columns = 1; columns <= Math.max(1, number); columns++) {
    const rows = Math.ceil(number / columns);
    const scale = Math.min(aspect / (columns * (card.wide + gap)), 1 / (rows * (card.high + gap)));
    if (scale > bestScale * 1.0001) [best, bestScale] = [columns, scale];
  }
  return best;
}

/** Where a flow touches an executor: its glyph, or its worker where that is folded; null where it has no place. */
export function anchorOf(view, layout, executor) {
  const glyph = layout.executors[executor];
  if (glyph) return glyph;
  const worker = view.executors[executor].worker;
  return worker === null ? null : centreOf(layout.workers[worker]);
}

export function centreOf(box) {
  return "radius" in box ? { x: box.x, y: box.y } : { x: box.x + box.wide / 2, y: box.y + box.high / 2 };
}

/** Scale and shift with which the whole map fits into a canvas, below `top`. */
export function fitted(layout, width, height, top = 0) {
  const scale = Math.min(1.6, width / layout.wide, (height - top) / layout.high);
  return { scale, x: (width - layout.wide * scale) / 2, y: top + (height - top - layout.high * scale) / 2 };
}

/** What lies under a point of the map: the innermost thing; null where there is nothing. */
export function under(layout, x, y) {
  const glyph = layout.executors.find((one) => one && (one.x - x) ** 2 + (one.y - y) ** 2 <= (one.radius + 3) ** 2);
  const inside = (box) => box && x >= box.x && x <= box.x + box.wide && y >= box.y && y <= box.y + box.high;
  return glyph ?? layout.workers.find(inside) ?? layout.supervisors.find(inside) ?? null;
}
