// Figures and times for people. Unknown is never zero: null becomes "unknown".

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function figure(value) {
  if (value === null || value === undefined) return "unknown";
  return Math.abs(value) >= 100 ? whole.format(value) : tenths.format(value);
}

export function milliseconds(value) {
  return value === null ? figure(value) : `${figure(value)} ms`;
}

/** 1,234 as 1.2k: for places with little room. */
export function short(value) {
  if (value === null || value === undefined) return "?";
  const size = Math.abs(value);
  if (size >= 1e6) return `${tenths.format(value / 1e6)}M`;
  if (size >= 1e4) return `${tenths.format(value / 1e3)}k`;
  return figure(value);
}

/** Of nothing at all there is no share, which is not that it is unknown. */
export function percent(part, all) {
  if (part === null || all === null) return "unknown";
  return all ? `${Math.round((100 * part) / all)}%` : "–";
}

export function count(number, noun) {
  return `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function clockTime(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

export function dayAndTime(seconds) {
  const date = new Date(seconds * 1000);
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return `${day}, ${date.toLocaleTimeString("en-GB")}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "unknown";
  if (seconds < 90) return `${tenths.format(seconds)} s`;
  if (seconds < 5400) return `${whole.format(seconds / 60)} min`;
  return `${tenths.format(seconds / 3600)} h`;
}

/** HoldReason -> "hold reason", for people. */
export function words(name) {
  return name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}

/** With its sign: +12%, −58%. */
export function change(percentage) {
  return `${percentage < 0 ? "−" : "+"}${figure(Math.abs(percentage))}%`;
}

/** The operator's sentences are plain ASCII; a page can do better. */
export function readable(sentence) {
  return sentence.replaceAll(" -> ", " → ").replaceAll("(-", "(−");
}
