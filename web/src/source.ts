// Where sessions come from: the server of `pactql view`, or the document itself (`pactql share --html`).
// This file knows requests. It must not know elements.

import type { PageData } from './data';

export interface SessionRow {
  name: string;
  title: string | null;
  project: string | null;
  agent: string | null;
  model: string | null;
  when: string | null;
  steps: number;
  /** Null where there is no price. */
  nanos: number | null;
  /** Whether the cost is known, or known not to be. */
  counted: boolean;
}

export interface Span {
  start: number;
  end: number;
  label: string;
}

/** An error of the engine; spans are bytes of the selector. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly spans: Span[] = [],
    readonly help = '',
    readonly correction = '',
  ) {
    super(message);
  }
}

const embedded = document.getElementById('data');

/** Whether a server answers. */
export const live = embedded === null;

async function ask(path: string, query: Record<string, string>): Promise<any> {
  let answer: Response;
  try {
    answer = await fetch(path + '?' + new URLSearchParams(query).toString(), { cache: 'no-store' });
  } catch {
    throw new Refused('E_GONE', '`pactql view` does not answer', [], 'start it again');
  }
  const body = await answer.json().catch(() => null);
  if (answer.ok && body !== null) return body;
  const error = body?.error ?? {};
  throw new Refused(
    String(error.code ?? answer.status),
    String(error.message ?? answer.statusText),
    Array.isArray(error.spans) ? error.spans : [],
    String(error.help ?? ''),
    String(error.correction ?? ''),
  );
}

const text = (value: unknown) => (typeof value === 'string' ? value : null);

/** Nano-dollars of a sum of calls, if any of them has a price. */
const priceOf = (used: any): number | null => (used && used.requests > used.unpriced + used.uncounted ? Number(used.nano_dollars) : null);

const costs = new Map<string, Promise<number | null>>();
let waiting: Promise<unknown> = Promise.resolve();

/** What a session of a store costs: asked for when its row is seen, one after the other. */
export function cost(row: SessionRow): Promise<number | null> {
  const key = `${row.name} ${row.steps}`;
  let known = costs.get(key);
  if (!known) {
    known = waiting.then(async () => priceOf((await ask('/api/usage', { session: row.name, by: 'session' })).total)).catch(() => null);
    waiting = known;
    costs.set(key, known);
  }
  return known;
}

/** A part of the list of sessions. */
export async function sessions(search: string, cursor: string | null): Promise<{ rows: SessionRow[]; next: string | null; total: number }> {
  const query: Record<string, string> = { limit: '500' };
  if (search) query.search = search;
  if (cursor) query.cursor = cursor;
  const body = await ask('/api/sessions', query);
  const rows = (body.sessions as any[]).map((row): SessionRow => {
    return {
      name: String(row.name),
      title: text(row.title),
      project: text(row.project),
      agent: text(row.agent),
      model: text(row.model),
      when: text(row.when) ?? text(row.committed),
      steps: Number(row.steps ?? row.snapshots ?? 0),
      nanos: priceOf(row.used),
      counted: Boolean(row.used),
    };
  });
  return { rows, next: text(body.next), total: Number(body.total ?? rows.length) };
}

/** The session that is in the document. */
export function own(): PageData | null {
  return embedded === null ? null : (JSON.parse(embedded.textContent ?? '') as PageData);
}

export const session = (name: string): Promise<PageData> => ask('/api/page', { session: name });

export const fields = (name: string): Promise<any> => ask('/api/fields', { session: name });

export const explain = (name: string, selector: string): Promise<any> => ask('/api/explain', { session: name, selector });

export const parting = (name: string, other: string): Promise<any> => ask('/api/diff', { session: name, other });

/** The ids that a selector finds at each cycle; one that names a time of its own is asked for that time alone. */
export async function select(name: string, selector: string): Promise<Map<string, Set<string>>> {
  const found = new Map<string, Set<string>>();
  const timed = /^\s*@/.test(selector);
  const body = await ask('/api/select', { session: name, selector: timed ? selector : '@history ' + selector });
  if (Array.isArray(body)) {
    // Of one snapshot; its nodes name it.
    const nodes: any[] = await ask('/api/select', { session: name, selector, nodes: 'true' });
    for (const node of nodes) {
      const cycle = String(node.cycle ?? String(node.snapshot ?? '').replace(/^@c/, ''));
      const ids = found.get(cycle) ?? new Set();
      found.set(cycle, ids.add(String(node.id)));
    }
    return found;
  }
  // A range: what the newest snapshot has, and the differences from each to the one before it.
  const newest = body.snapshots[0];
  if (newest === undefined) return found;
  const bare = timed ? selector.replace(/^\s*@\S+\s+/, '') : selector;
  const ids: any[] = await ask('/api/select', { session: name, selector: bare, at: '@c' + newest.cycle });
  let now = new Set(ids.map(String));
  found.set(String(newest.cycle), now);
  for (const diff of body.diffs as any[]) {
    now = new Set(now);
    for (const id of diff.added_ids) now.delete(id);
    for (const id of diff.removed_ids) now.add(id);
    found.set(String(diff.to.cycle), now);
  }
  return found;
}

/** Calls back when a session or the list changes. Returns what ends it. */
export function events(name: string | null, grown: (steps: number) => void, listed: () => void, state: (open: boolean) => void): () => void {
  const source = new EventSource('/api/events' + (name === null ? '' : '?' + new URLSearchParams({ session: name }).toString()));
  source.addEventListener('changed', (event) => {
    const body = JSON.parse((event as MessageEvent<string>).data);
    if (body.session === name) grown(Number(body.steps));
  });
  source.addEventListener('sessions', listed);
  source.addEventListener('open', () => state(true));
  source.addEventListener('error', () => state(false));
  return () => source.close();
}
