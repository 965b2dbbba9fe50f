// The operator's JSON API (docs/reference/api). Each address remembers its last answer: what has not changed is not sent.

const known = new Map();
const MOST_KNOWN = 40;
const PATIENCE_MS = 10_000;
const VERDICT_PATIENCE_MS = 60_000; // the operator asks Kubernetes several times
const SILENT = "the operator does not answer";

export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The document at `path` under /api/v1, with `query` where it is given. Raises ApiError. */
export async function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const address = `api/v1/${path}?${new URLSearchParams(given)}`;
  const before = known.get(address);
  const answer = await asked(address, { headers: before ? { "If-None-Match": before.tag } : {} });
  if (answer.status === 304) return before.document;
  const document = await read(answer);
  remember(address, { tag: answer.headers.get("ETag"), document });
  return document;
}

/** Say yes or no to a plan. `token` is sent, and kept nowhere. */
export async function decide(plan, verdict, cluster, token) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const address = `api/v1/plans/${encodeURIComponent(plan)}/verdict?${new URLSearchParams({ cluster })}`;
  return read(await asked(address, { method: "POST", headers, body: JSON.stringify({ verdict }) }, VERDICT_PATIENCE_MS));
}

/** Who is connected to nobody any more, as by a forwarded port, would wait for ever. */
async function asked(address, options, patience = PATIENCE_MS) {
  try {
    return await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(patience), ...options });
  } catch {
    throw new ApiError(SILENT, 0);
  }
}

async function read(answer) {
  const document = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(document?.message ?? `answered ${answer.status}`, answer.status);
  if (document === null) throw new ApiError(SILENT, 0); // in the middle of its answer
  return document;
}

function remember(address, entry) {
  known.delete(address);
  known.set(address, entry);
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value);
}
