// The live map: canvas, mouse, keys. Executors of a worker are folded away by hand, or by themselves where they are many.

import { h, sharp } from "./dom.js";
import { boxOf, drawMap } from "./draw.js";
import { lineAt, linesOf, linesToDraw, MOST_LINES } from "./flows.js";
import { centreOf, fitted, layOut, under } from "./layout.js";
import { looksOf, theme } from "./palette.js";
import { goTo, hasNoCluster, onChange, select, state, topologyNames } from "./state.js";
import { firstInside, holderOf, nextTo } from "./steps.js";
import { nameOf, tipFor, tipForLine } from "./tips.js";
import { clockTime } from "./format.js";

const MANY_EXECUTORS = 150;
const MOST_PULSING = 120;
const FRAME_MS = 50;
const TOOLS_HIGH = 46;
const PAN = 80, MARGIN = 24;
const FAR_PILLS = 6;
const NEAR_LINE = 6;
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

export function makeMap(view, speak) {
  const canvas = h("canvas", { id: "map", tabindex: 0, role: "application", "aria-label": "Map of the cluster. Arrows select, u and i go up to the worker and supervisor and into them, shift and arrows move the map, Enter folds a worker, plus and minus zoom." });
  const tip = h("div", { class: "tip", hidden: true });
  const note = h("div", { class: "note small soft" });
  const asof = h("button", { class: "asof primary", hidden: true, onclick: () => goTo(null) });
  const fold = h("button", { title: "Fold or unfold all workers (f)", onclick: toggleAll }, "Fold workers");
  const tools = h("div", { class: "tools" }, fold, button("+", "Zoom in (+)", () => zoom(1.25)), button("−", "Zoom out (-)", () => zoom(0.8)), button("⤢", "Show everything (0)", reset));
  const empty = h("div", { class: "empty" }, "");
  const folded = new Map(); // worker "supervisor:port" -> by hand
  let foldAll = null, zoomed = null, scene = null, frame = 0, shape = "";

  canvas.addEventListener("mousemove", hover);
  canvas.addEventListener("mouseleave", () => (tip.hidden = true));
  canvas.addEventListener("click", click);
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 1.12 : 0.89, event.offsetX, event.offsetY); }, { passive: false });
  canvas.addEventListener("pointerdown", drag);
  canvas.addEventListener("keydown", keys);
  new ResizeObserver(() => canvas.isConnected && relayOut()).observe(view);
  onChange((what) => {
    if (what.has("view") || what.has("at")) relayOut();
    else if (what.has("selected") || what.has("theme")) draw();
  });
  setInterval(animate, FRAME_MS);

  function button(words, title, onclick) {
    return h("button", { title, "aria-label": title, onclick }, words);
  }

  function isFolded(view, at) {
    const worker = view.workers[at];
    return folded.get(`${view.supervisors[worker.supervisor].id}:${worker.port}`) ?? foldAll ?? view.executors.length > MANY_EXECUTORS;
  }

  function relayOut() {
    const seen = state.view;
    empty.hidden = Boolean(seen?.supervisors.length);
    empty.textContent = seen && seen.measured_at_seconds !== null ? "No supervisor is alive." : hasNoCluster() ? "No Storm cluster is managed here." : "Waiting for the first pass of the loop…";
    if (!seen) return forget();
    if (!canvas.clientWidth) return;
    const layout = layOut(seen, (at) => isFolded(seen, at), canvas.clientWidth / Math.max(1, canvas.clientHeight - TOOLS_HIGH));
    scene = { view: seen, layout, lines: linesOf(seen, layout), looks: looksOf(seen), names: topologyNames() };
    if (state.selected && !boxOf(layout, state.selected)) state.selected = null;
    const now = `${layout.wide}x${layout.high}`;
    if (now !== shape) zoomed = null; // what was zoomed into is elsewhere now
    shape = now;
    asof.hidden = state.at === null;
    asof.textContent = state.at === null ? "" : `As of ${clockTime(seen.at_seconds)} · back to live (l)`;
    fold.textContent = layout.workers.length && layout.workers.every((worker) => worker.folded) ? "Unfold workers" : "Fold workers";
    const left = scene.lines.length - linesToDraw(scene, null).length;
    note.textContent = left > 0 ? `The ${MOST_LINES} heaviest flows between supervisors are drawn. Select a worker or supervisor to see all of its own; the table lists them.` : "";
    draw();
  }

  /** What was drawn is of another cluster. */
  function forget() {
    [scene, zoomed, shape] = [null, null, ""];
    tip.hidden = asof.hidden = true;
    note.textContent = "";
    const { context, width, height } = sharp(canvas);
    context.clearRect(0, 0, width, height);
  }

  function draw() {
    if (!scene || !canvas.isConnected || !canvas.clientWidth) return;
    const { context, width, height } = sharp(canvas);
    if (!performance.getEntriesByName("first-view").length) performance.mark("first-view"); // for `make bench-page`
    drawMap(context, width, height, scene, { transform: transform(), selected: state.selected, phase: pulses() ? (frame % 20) / 20 : null, farPills: FAR_PILLS, colours: theme() });
  }

  function pulses() {
    return !calm.matches && scene.lines.length <= MOST_PULSING;
  }

  function animate() {
    if (document.hidden || !scene || !canvas.isConnected || !pulses() || !scene.lines.some((line) => line.level === "crossing")) return;
    frame += 1;
    draw();
  }

  function transform() {
    return zoomed ?? (scene ? fitted(scene.layout, canvas.clientWidth, canvas.clientHeight, TOOLS_HIGH) : { scale: 1, x: 0, y: 0 });
  }

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    if (!scene) return;
    const now = transform();
    const scale = Math.min(4, Math.max(0.05, now.scale * factor));
    const by = scale / now.scale;
    zoomed = { scale, x: x - (x - now.x) * by, y: y - (y - now.y) * by };
    draw();
  }

  function pan(dx, dy) {
    const now = transform();
    zoomed = { ...now, x: now.x - dx * PAN, y: now.y - dy * PAN };
    draw();
  }

  /** What has been selected by a key is moved to the middle where it is not to be seen. */
  function bringIntoView(box) {
    const now = transform(), wide = canvas.clientWidth, high = canvas.clientHeight, centre = centreOf(box);
    const [x, y] = [centre.x * now.scale + now.x, centre.y * now.scale + now.y];
    if (x >= MARGIN && x <= wide - MARGIN && y >= TOOLS_HIGH && y <= high - MARGIN) return;
    zoomed = { scale: now.scale, x: wide / 2 - centre.x * now.scale, y: high / 2 - centre.y * now.scale };
    draw();
  }

  function zoomByKey(factor) {
    const at = state.selected && toScreen(state.selected.kind, state.selected.at);
    zoom(factor, at?.x, at?.y);
  }

  function reset() {
    zoomed = null;
    draw();
  }

  function toggleAll() {
    const all = scene?.layout.workers.every((worker) => worker.folded);
    folded.clear();
    foldAll = !all;
    relayOut();
    speak(foldAll ? "All workers are folded" : "All workers are unfolded");
  }

  function toggle(at) {
    const worker = scene.view.workers[at];
    folded.set(`${scene.view.supervisors[worker.supervisor].id}:${worker.port}`, !scene.layout.workers[at].folded);
    relayOut();
  }

  function found(event) {
    const { scale, x, y } = transform();
    return scene ? under(scene.layout, (event.offsetX - x) / scale, (event.offsetY - y) / scale) : null;
  }

  function lineUnder(event) {
    const { scale, x, y } = transform();
    return scene ? lineAt(linesToDraw(scene, state.selected), (event.offsetX - x) / scale, (event.offsetY - y) / scale, NEAR_LINE / scale) : null;
  }

  function hover(event) {
    const box = found(event);
    const line = box?.kind === "executor" ? null : lineUnder(event);
    tip.hidden = !box && !line;
    canvas.style.cursor = box ? "pointer" : "default";
    if (tip.hidden) return;
    tip.replaceChildren(...(line ? tipForLine(scene.view, line) : tipFor(scene.view, box, scene.names)));
    tip.style.left = `${Math.max(8, Math.min(event.offsetX + 14, canvas.clientWidth - 250))}px`;
    tip.style.top = `${Math.max(8, Math.min(event.offsetY + 14, canvas.clientHeight - tip.offsetHeight - 8))}px`;
  }

  function click(event) {
    const box = found(event);
    const again = box && state.selected?.kind === box.kind && state.selected.at === box.at;
    if (again && box.kind === "worker") toggle(box.at);
    else choose(again ? null : box);
  }

  function choose(box) {
    select(box && { kind: box.kind, at: box.at });
    if (box) speak(nameOf(scene.view, box, scene.names));
  }

  function drag(event) {
    if (event.button !== 0) return;
    const start = { ...transform(), atX: event.clientX, atY: event.clientY };
    const move = (next) => {
      if (!zoomed && Math.hypot(next.clientX - start.atX, next.clientY - start.atY) < 6) return;
      zoomed = { scale: start.scale, x: start.x + next.clientX - start.atX, y: start.y + next.clientY - start.atY };
      draw();
    };
    const end = () => window.removeEventListener("pointermove", move);
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end, { once: true });
  }

  function keys(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!scene || event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrows[event.key] && event.shiftKey) pan(...arrows[event.key]);
    else if (arrows[event.key]) go(nextTo(scene, state.selected, ...arrows[event.key]));
    else if (event.key === "u") go(holderOf(scene, state.selected));
    else if (event.key === "i") go(firstInside(scene, state.selected));
    else if (event.key === "Enter" && state.selected?.kind === "worker") toggle(state.selected.at);
    else if (event.key === "Escape") choose(null);
    else if (event.key === "+" || event.key === "=") zoomByKey(1.25);
    else if (event.key === "-") zoomByKey(0.8);
    else if (event.key === "0") reset();
    else if (event.key === "f") toggleAll();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function go(box) {
    if (!box) return;
    choose(box);
    bringIntoView(box);
  }

  return { show: () => { view.replaceChildren(canvas, tools, asof, note, tip, empty); relayOut(); }, focus: () => canvas.focus(), scene: () => scene, toScreen };

  /** Where something of the map is on the canvas, for tests and for tips. */
  function toScreen(kind, at) {
    const box = boxOf(scene.layout, { kind, at }), { scale, x, y } = transform();
    if (!box) return null;
    const centre = centreOf(box);
    return { x: centre.x * scale + x, y: centre.y * scale + y };
  }
}
