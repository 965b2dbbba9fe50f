// A colour for each component: six of Okabe and Ito's set, and a dark grey for ackers. Any two of them are told apart
// without one kind of cones too (tests/unit/console/test_page_colours.py computes it). Vermilion is left to flows
// between supervisors. From the seventh component on a mark within tells those of one colour apart, up to 24 of them.

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442"];
const ACKER = "#4a5561";
const LEAST_CONTRAST = 3; // WCAG 2.2, 1.4.11: what must be seen to understand a picture

/** Looks by "topology/component": {colour, mark, initials}. In the order of the view, so that it never changes. */
export function looksOf(view) {
  const looks = new Map();
  let next = 0;
  for (const topology of view.topologies) {
    for (const component of topology.components) {
      const isAcker = component.kind === "acker";
      const look = isAcker ? { colour: ACKER, mark: 0 } : { colour: COLOURS[next % 6], mark: Math.floor(next / 6) % 4 };
      if (!isAcker) next += 1;
      looks.set(key(topology.id, component.name), { ...look, initials: initials(component.name), stateful: component.stateful });
    }
  }
  return looks;
}

export function key(topology, component) {
  return `${topology}/${component}`;
}

function initials(name) {
  const letters = name.replace(/^_+/, "").split(/[^A-Za-z0-9]+/).filter(Boolean);
  return (letters.length > 1 ? letters[0][0] + letters[1].slice(-1) : (letters[0] ?? "?").slice(0, 2)).toLowerCase();
}

const BAD = ["ClusterUnreachable", "MetricsIncomplete", "MetricsStale", "TooLittleCapacity", "Infeasible"];

/** How a reason not to act looks: "bad", "good" or "warn", each a colour and a class of the page. */
export function gradeOf(reason) {
  return BAD.includes(reason) ? "bad" : reason === "NoChange" ? "good" : "warn";
}

/** Whether a shape of that colour needs a rim of another one to stand out from what is behind it. */
export function needsRim(colour, behind) {
  const pair = `${colour} ${behind}`;
  if (!rims.has(pair)) rims.set(pair, contrast(colour, behind) < LEAST_CONTRAST);
  return rims.get(pair);
}

const rims = new Map();

/** Of two colours as #rrggbb, by WCAG 2.2: from 1 to 21. */
function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The page's own colours, as the style sheet has them now. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of ["page", "card", "sunk", "line", "strong", "text", "soft", "faint", "accent", "crossing", "inside", "bad", "warn", "good"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  return colours;
}
