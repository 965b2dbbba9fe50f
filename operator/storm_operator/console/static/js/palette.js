// A colour for each component: Okabe and Ito's set, which people of all kinds of sight can tell apart. Its vermilion is
// left to flows between supervisors. From the seventh component on a mark within tells those of one colour apart.

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442"];
const ACKER = "#8a97a5";

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

/** The page's own colours, as the style sheet has them now. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of ["page", "card", "sunk", "line", "strong", "text", "soft", "faint", "accent", "crossing", "inside", "bad", "warn", "good"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  return colours;
}
