// Words on a canvas.

export const FONT = "system-ui, 'Segoe UI', sans-serif";
export const READABLE = 0.62; // from this scale on, what is written in units of the map can be read

/** With a `halo` of that colour, `thick` wide, where something else may lie beneath. */
export function text(context, words, x, y, font, colour, align = "left", halo = null, thick = 4) {
  context.font = font;
  context.textAlign = align;
  context.textBaseline = "middle";
  if (halo) {
    context.strokeStyle = halo;
    context.lineWidth = thick;
    context.lineJoin = "round";
    context.strokeText(words, x, y);
  }
  context.fillStyle = colour;
  context.fillText(words, x, y);
}

export function clipped(context, words, room, font) {
  context.font = font;
  if (context.measureText(words).width <= room) return words;
  let kept = words;
  while (kept.length > 1 && context.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
  return `${kept}…`;
}
