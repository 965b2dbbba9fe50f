// What is selected is a place in a list of the view: in another view, where others have come and gone, it is found again.

/** The same supervisor, worker (by its slot) or executor in `view`; null where it is no longer there. */
export function foundAgain(selected, before, view) {
  if (!selected || !before || !view) return null;
  const { kind } = selected, identity = identityOf(before, kind, selected.at);
  const at = view[`${kind}s`].findIndex((_, at) => identityOf(view, kind, at) === identity);
  return at < 0 ? null : { kind, at };
}

function identityOf(view, kind, at) {
  if (kind === "supervisor") return view.supervisors[at].id;
  if (kind === "worker") return `${view.supervisors[view.workers[at].supervisor].id}:${view.workers[at].port}`;
  const { topology, component, tasks } = view.executors[at];
  return `${topology}/${component}/${tasks}`;
}
