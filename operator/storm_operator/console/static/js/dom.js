// The little of a framework that this page needs.

const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes that begin with "on" are listeners, null and false ones are left out. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put `children` in place of what is in `element`; what had the focus keeps it, found by its data-key. */
export function refill(element, ...children) {
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const top = element.scrollTop;
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  element.scrollTop = top;
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** A canvas as sharp as the screen; its context draws in CSS pixels. */
export function sharp(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const w = Math.round(width * ratio), d = Math.round(height * ratio);
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== d) canvas.height = d;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

export function pairs(entries) {
  return h("dl", { class: "pairs" }, entries.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}
