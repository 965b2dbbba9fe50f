// Supervisors' host names as people are shown them: in Kubernetes all of a cluster end alike, in 40 characters.

const known = new WeakMap(); // by view: a map is drawn many times

/** A supervisor's host in that view, as short as tells it apart. */
export function shortHost(view, host) {
  if (!known.has(view)) known.set(view, shortNames(view.supervisors.map((one) => one.host)));
  return known.get(view).get(host) ?? host;
}

/** Each supervisor's host by what stands before its first dot; all by their whole names where two were alike then.
 * Addresses stay whole. `status` has the same rule, in core/host_names.py. */
export function shortNames(hosts) {
  const names = hosts.map((host) => (isAddress(host) ? host : host.split(".")[0]));
  const isClear = new Set(names).size === names.length && !names.includes("");
  return new Map(hosts.map((host, at) => [host, isClear ? names[at] : host]));
}

function isAddress(host) {
  return host.includes(":") || /^\d+(\.\d+){3}$/.test(host);
}
