// The page: which session, which step, which view; keys; what changes while it is open.

import { render } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Address, read, TABS, type Tab, write } from './address';
import { BesideView } from './beside';
import { Run } from './data';
import { Picker } from './picker';
import { SelectorBox } from './selector';
import { cost, events, live, own, Refused, select, session as load, sessions, type SessionRow } from './source';
import { Strip } from './strip';
import { CacheView, ChangesView, type Look, NewView, RequestView, TokensView, TreeView, type ViewProps } from './views';
import { amount, counted, lasting, money, pattern, percent, seconds, short, visible } from './words';
import { happened, sent, stepName } from './words-of';

const TITLES: Record<Tab, [string, string]> = {
  new: ['New', 'what is new in this step'],
  request: ['Request', 'the whole request, with the reply'],
  changes: ['Changes', 'what changed since the step before'],
  tokens: ['Tokens', 'what fills the request'],
  cache: ['Cache', 'what the prompt cache could keep, and what broke it'],
  tree: ['Tree', 'the context tree: regions, turns, blocks'],
  beside: ['Beside', 'another run beside this one: where they part first'],
};
const SHOWN = TABS.filter((tab) => live || tab !== 'beside');

const KEYS: [string, string][] = [
  ['\u2190 \u2192 or k j', 'step before, next step'],
  ['Home End', 'first step, newest step'],
  ['Page Up, Page Down', 'ten steps'],
  ['c e b', 'next compaction, error, cache miss; with Shift the one before'],
  [`1 \u2026 ${SHOWN.length}`, SHOWN.map((tab) => TITLES[tab][0].toLowerCase()).join(', ')],
  ['/', 'search the texts of all steps; Enter goes to the next match'],
  ['n N', 'next match, match before'],
  ...(live
    ? ([
        ['s', 'the box for selectors'],
        ['m M', 'next step where the selector finds something new, the one before'],
        ['l', 'list of sessions'],
        ['f', 'follow: move to steps as they come'],
      ] as [string, string][])
    : []),
  ['t', 'list of steps'],
  ['J K', 'next block, block before'],
  ['\u2191 \u2193', 'scroll the step; in a list or a tree, move'],
  ['Enter', 'open what is chosen'],
  ['Escape', 'back to the strip'],
  ['?', 'these keys'],
];

interface Hit {
  block: number;
  offset: number;
}
const MOST_HITS = 20_000;

/** The matches of a search in all texts, in the order in which the blocks came. */
function search(run: Run, typed: string): { hits: Hit[]; more: boolean } {
  const hits: Hit[] = [];
  if (typed === '') return { hits, more: false };
  const wanted = pattern(typed);
  const lower = typed.toLowerCase();
  const order = run.blocks.map((block) => block.at).filter((at) => run.first[at]! >= 0);
  order.sort((a, b) => run.first[a]! - run.first[b]! || a - b);
  for (const at of order) {
    const block = run.block(at);
    const before = hits.length;
    for (const match of run.read(block).matchAll(wanted)) {
      hits.push({ block: at, offset: match.index });
      if (hits.length >= MOST_HITS) return { hits, more: true };
    }
    if (hits.length === before && (block.tool.toLowerCase().includes(lower) || block.id.toLowerCase() === lower)) hits.push({ block: at, offset: -2 });
  }
  return { hits, more: false };
}

/** Whether the sums and the price leave out the reply, as the provider's count of it is not known. */
const uncountedReply = ({ made, usage: [input, , , output] }: ReturnType<Run['step']>) => made && input !== null && output === null;

function Facts({ run }: { run: Run }) {
  const sums = useMemo(() => {
    const sums = { requests: 0, input: 0, cached: 0, output: 0, cost: 0, priced: 0, uncountedReplies: 0 };
    for (const step of run.data.steps) {
      if (!step.made) continue;
      sums.requests++;
      sums.input += step.usage[0] ?? 0;
      sums.cached += step.usage[1] ?? 0;
      sums.output += step.usage[3] ?? 0;
      sums.cost += step.cost ?? 0;
      if (step.cost !== undefined) sums.priced++;
      if (uncountedReply(step)) sums.uncountedReplies++;
    }
    return sums;
  }, [run]);
  const parts = [counted(sums.requests, 'request')];
  if (sums.input > 0) parts.push(`${short(sums.input)} tokens in`, `${percent(sums.cached, sums.input)} from the prompt cache`, `${short(sums.output)} out`);
  else if (run.length > 0) parts.push(`at most ${short(Math.max(...run.data.steps.map((step) => step.tokens)))} tokens in one (${run.data.tokenizer}${run.data.estimate ? ', estimate' : ''})`);
  if (sums.uncountedReplies > 0) parts.push(`${counted(sums.uncountedReplies, 'request')} without the provider's count of the reply, which is not in the sums`);
  const [, project, agent] = run.data.about;
  return (
    <p class="facts">
      {sums.priced > 0 && (
        <strong title={`Prices of ${run.data.prices}${sums.priced < sums.requests ? `; ${counted(sums.requests - sums.priced, 'request')} without a price` : ''}`}>
          {money(sums.cost)} in total
        </strong>
      )}
      {sums.priced > 0 && ' \u00b7 '}
      {parts.join(' \u00b7 ')}
      {agent && ` \u00b7 ${visible(agent)}`}
      {project && ` \u00b7 ${visible(project)}`}
      {run.data.reconstructed && (
        <span title="A transcript does not say exactly what was sent; what it never holds is not invented."> {'\u00b7'} requests reconstructed from a transcript</span>
      )}
      {run.data.redacted > 0 && ` \u00b7 ${counted(run.data.redacted, 'place')} redacted`}
    </p>
  );
}

function StepHead({ run, index }: { run: Run; index: number }) {
  const step = run.step(index);
  const [input, cached, written, output] = step.usage;
  const parts: any[] = [];
  if (input !== null) parts.push(`${amount(input)} tokens in`);
  if (cached) parts.push(`${amount(cached)} from the prompt cache (${percent(cached, input ?? 0)})`);
  if (written) parts.push(`${amount(written)} written to it`);
  if (output !== null) parts.push(`${amount(output)} out`);
  if (step.cost !== undefined) parts.push(`${money(step.cost)}${uncountedReply(step) ? ' without the reply, whose tokens are not known' : ''}`);
  if (input === null) parts.push(`${amount(step.tokens)} tokens (${run.data.tokenizer}${run.data.estimate ? ', estimate' : ''})`);
  if (!step.made) parts.push('no request was sent');
  const model = run.model(index);
  if (model) parts.push(visible(model));
  const before = index > 0 ? run.step(index - 1).time : undefined;
  const gap = before && step.time ? (Date.parse(step.time) - Date.parse(before)) / 1000 : NaN;
  const { broken, unread } = step.prefix ?? {};
  return (
    <div class="head">
      <h2 title={`cycle ${step.cycle}, in selectors @c${step.cycle}`}>
        Step {step.cycle} <span class="quiet">of {run.step(run.length - 1).cycle}</span>
        <span class="happened">{happened(run, index)}</span>
      </h2>
      <p class="quiet">
        {parts.join(' \u00b7 ')}
        {step.time && (
          <>
            {' \u00b7 '}
            <time dateTime={step.time}>{seconds(step.time)}</time>
          </>
        )}
        {Number.isFinite(gap) && gap >= 0 && `, ${lasting(gap)} after step ${run.step(index - 1).cycle}`}
      </p>
      {step.events.map(([kind, number, about], at) =>
        kind === 'failed' || kind === 'tool errors' ? (
          <p key={at} class="alert failed">
            {counted(number, kind === 'failed' ? 'failed call' : 'tool error')}
            {about ? ': ' + visible(about) : ''}
          </p>
        ) : kind === 'compaction' ? (
          <p key={at} class="alert compaction">
            Compaction: earlier messages were replaced by a summary
          </p>
        ) : null,
      )}
      {broken && <p class="alert miss">{`The prompt cache broke: ${visible(broken.cause)}; ${step.prefix!.percent ?? 0} % of the request before kept`}</p>}
      {unread && <p class="alert miss">{`Cache miss: the provider read ${amount(unread.read)} of ${amount(unread.readable)} tokens that it could have; likely ${unread.cause}`}</p>}
      {run.marks[index]!.model && <p class="alert model">{`The model changed: ${visible(model)}`}</p>}
    </div>
  );
}

function App() {
  const [address, setAddress] = useState<Address>(() => read(location.hash));
  const [run, setRun] = useState<Run | null>(() => {
    const data = own();
    return data && new Run(data);
  });
  const [name, setName] = useState<string | null>(null);
  const [error, setError] = useState<string>('');
  const [rows, setRows] = useState<SessionRow[]>([]);
  const [total, setTotal] = useState(0);
  const [wanted, setWanted] = useState('');
  const [activeRow, setActiveRow] = useState(0);
  const [side, setSide] = useState<'sessions' | 'steps'>(live ? 'sessions' : 'steps');
  const [drawer, setDrawer] = useState(false);
  const [open, setOpen] = useState(true);
  const [follow, setFollow] = useState(false);
  const [fresh, setFresh] = useState(0);
  const [typed, setTyped] = useState(address.search);
  const [hit, setHit] = useState(-1);
  const [reveal, setReveal] = useState(address.block ? 1 : 0);
  const [selected, setSelected] = useState<{ found: Map<string, Set<string>>; said: string }>({ found: new Map(), said: '' });

  const help = useRef<HTMLDialogElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const selectorBox = useRef<HTMLInputElement>(null);
  const main = useRef<HTMLElement>(null);

  const patch = useCallback((change: Partial<Address>) => setAddress((address) => ({ ...address, ...change })), []);

  // --- The list of sessions ---

  const list = useCallback((text: string) => {
    sessions(text, null).then(
      async (found) => {
        const all = found.rows;
        setRows(all);
        setTotal(Math.max(found.total, all.length));
        // The rest of a long list comes after its beginning is seen.
        for (let { next } = found; next !== null && all.length < 20_000; ) {
          const more = await sessions(text, next);
          all.push(...more.rows);
          next = more.next;
          setRows([...all]);
        }
        setAddress((address) => (address.session === null && all[0] && text === '' ? { ...address, session: all[0].name } : address));
        if (all.length === 0 && text === '') setError('There are no sessions.');
      },
      (error: Error) => setError(error.message),
    );
  }, []);
  useEffect(() => {
    if (!live) return;
    const timer = setTimeout(() => list(wanted), wanted ? 120 : 0);
    return () => clearTimeout(timer);
  }, [wanted]);

  // --- The session ---

  const loading = useRef<{ name: string | null; again: boolean }>({ name: null, again: false });
  const fetchRun = useCallback((of: string) => {
    if (loading.current.name === of) {
      loading.current.again = true;
      return;
    }
    loading.current = { name: of, again: false };
    load(of).then(
      (data) => {
        const { name: current, again } = loading.current;
        if (current !== of) return;
        loading.current = { name: null, again: false };
        setError('');
        setRun(new Run(data));
        setName(of);
        if (again) fetchRun(of);
      },
      (error: unknown) => {
        loading.current = { name: null, again: false };
        setError(error instanceof Refused ? error.message + (error.help ? `: ${error.help}` : '') : String(error));
      },
    );
  }, []);
  useEffect(() => {
    if (!live || address.session === null) return;
    setHit(-1);
    setFresh(0);
    fetchRun(address.session);
  }, [address.session]);

  const known = useRef(0);
  known.current = run?.length ?? 0;
  const at = useRef({ step: address.step, follow });
  at.current = { step: address.step, follow };
  useEffect(() => {
    if (!live) return;
    const of = address.session;
    return events(
      of,
      (steps) => {
        if (of !== null && steps !== known.current && known.current > 0) fetchRun(of);
      },
      () => list(wanted),
      setOpen,
    );
  }, [address.session, wanted]);
  // What comes while the page is open does not move what is read.
  const before = useRef<{ name: string | null; cycle: string | null; length: number }>({ name: null, cycle: null, length: 0 });
  useLayoutEffect(() => {
    if (!run) return;
    const newest = run.length > 0 ? run.step(run.length - 1).cycle : null;
    const last = before.current;
    if (last.name === name && last.length > 0 && last.length < run.length) {
      if (at.current.follow) patch({ step: null });
      else {
        if (at.current.step === null) patch({ step: last.cycle });
        setFresh((fresh) => fresh + run.length - last.length);
      }
    }
    before.current = { name, cycle: newest, length: run.length };
    document.title = visible(run.data.about[0] ?? run.data.title) + ' \u00b7 pactql';
  }, [run, name]);

  const index = useMemo(() => {
    if (!run || run.length === 0) return -1;
    return (address.step === null ? undefined : run.indexOf(address.step)) ?? run.length - 1;
  }, [run, address.step]);

  const choose = useCallback(
    (to: number, change: Partial<Address> = {}) => {
      if (!run || run.length === 0) return;
      const next = Math.max(0, Math.min(run.length - 1, to));
      if (next === run.length - 1) setFresh(0);
      setHit(-1);
      setReveal(change.block ? (reveal) => reveal + 1 : 0);
      patch({ step: run.step(next).cycle, block: null, ...change });
      if (!change.block) main.current?.scrollTo({ top: 0 });
    },
    [run],
  );

  // --- The address ---

  useEffect(() => {
    const next = write(address);
    if (next === location.hash) return;
    const timer = setTimeout(() => {
      const other = read(location.hash).session !== address.session && read(location.hash).session !== null;
      history[other ? 'pushState' : 'replaceState'](null, '', next);
    }, 150);
    return () => clearTimeout(timer);
  }, [address]);
  useEffect(() => {
    const moved = () => {
      const next = read(location.hash);
      setAddress(next);
      setTyped(next.search);
      if (next.block) setReveal((reveal) => reveal + 1);
    };
    window.addEventListener('hashchange', moved);
    window.addEventListener('popstate', moved);
    return () => {
      window.removeEventListener('hashchange', moved);
      window.removeEventListener('popstate', moved);
    };
  }, []);

  // --- Search ---

  useEffect(() => {
    if (typed.trim() === address.search) return;
    const timer = setTimeout(() => {
      setHit(-1);
      patch({ search: typed.trim() });
    }, 120);
    return () => clearTimeout(timer);
  }, [typed, address.search]);
  const { hits, more } = useMemo(() => (run ? search(run, address.search) : { hits: [], more: false }), [run, address.search]);
  const found = useMemo(() => (address.search ? pattern(address.search) : null), [address.search]);

  const jump = (to: number) => {
    if (!run || hits.length === 0) return;
    const next = (to + hits.length) % hits.length;
    const { block } = hits[next]!;
    const news = (step: number) => run.news[step]!.added.includes(block);
    const here = run.first[block]! <= index && (run.last[block]! < 0 || run.last[block]! >= index) && run.list(index).includes(block);
    const step = here && (news(index) || address.tab === 'request') ? index : run.first[block]!;
    patch({ step: run.step(step).cycle, tab: here && address.tab === 'request' ? 'request' : news(step) ? 'new' : 'request', block: run.block(block).id });
    setHit(next);
    setReveal((reveal) => reveal + 1);
  };
  /** From the step that is shown on, if no match is current. */
  const jumpOn = (direction: 1 | -1) => {
    if (hit >= 0) return jump(hit + direction);
    const from = hits.findIndex(({ block }) => run!.first[block]! >= index);
    jump(direction > 0 ? Math.max(0, from) : from - 1);
  };

  // Enter before the search was done.
  const jumps = useRef(false);
  useEffect(() => {
    if (!jumps.current) return;
    jumps.current = false;
    jumpOn(1);
  }, [hits]);

  // --- The selector ---

  useEffect(() => {
    const of = address.selector;
    if (!live || name === null || of === '') {
      setSelected({ found: new Map(), said: '' });
      return;
    }
    let current = true;
    select(name, of).then(
      (found) => {
        if (!current) return;
        const nodes = [...found.values()].reduce((most, ids) => Math.max(most, ids.size), 0);
        const steps = [...found.values()].filter((ids) => ids.size > 0).length;
        setSelected({ found, said: steps === 0 ? 'Nothing is found.' : `Found in ${counted(steps, 'step')}, at most ${counted(nodes, 'node')} in one.` });
      },
      (error: Error) => current && setSelected({ found: new Map(), said: error.message }),
    );
    return () => {
      current = false;
    };
  }, [name, run, address.selector]);

  /** Steps with something new that is found, and steps that only have something. */
  const matched = useMemo(() => {
    const steps = { fresh: new Set<number>(), has: new Set<number>() };
    if (!run) return steps;
    for (const { block } of hits) steps.fresh.add(run.first[block]!);
    let last: Set<string> | undefined;
    run.data.steps.forEach((step, at) => {
      const ids = selected.found.get(step.cycle);
      if (ids && ids.size > 0) steps.has.add(at);
      if (ids) for (const id of ids) if (!last?.has(id)) steps.fresh.add(at);
      last = ids;
    });
    return steps;
  }, [run, hits, selected]);

  const look: Look = {
    pattern: found,
    hit: hit >= 0 ? (hits[hit] ?? null) : null,
    matched: (run && index >= 0 && selected.found.get(run.step(index).cycle)) || NONE,
    chosen: address.block,
    reveal,
    href: (block) => write({ ...address, step: run && index >= 0 ? run.step(index).cycle : null, block }),
  };

  // --- Keys ---

  const toStep = (from: number, direction: 1 | -1, is: (at: number) => boolean) => {
    for (let at = from + direction; run && at >= 0 && at < run.length; at += direction) if (is(at)) return choose(at);
  };
  const toBlock = (direction: 1 | -1) => {
    const cards = [...document.querySelectorAll<HTMLElement>('main .card')];
    const now = cards.findIndex((card) => card.contains(document.activeElement));
    const next = cards[now < 0 ? (direction > 0 ? 0 : cards.length - 1) : now + direction];
    if (!next) return;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: 'nearest' });
    patch({ block: run!.block(Number(next.dataset.block)).id });
  };
  const tab = (to: Tab) => {
    setReveal(address.block ? (reveal) => reveal + 1 : 0);
    patch({ tab: to });
  };
  const toStrip = () => document.getElementById('strip')?.focus({ preventScroll: true });
  const panel = (of: 'sessions' | 'steps') => {
    setSide(of);
    setDrawer(true);
    requestAnimationFrame(() => document.getElementById(of === 'sessions' ? 'session-search' : 'steps')?.focus());
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || help.current?.open) return;
    const target = event.target as HTMLElement;
    if (event.key === 'Escape') {
      setDrawer(false);
      toStrip();
      return;
    }
    if (target.closest('input, select, textarea')) return;
    const marked = (mark: 'compaction' | 'error' | 'miss') => (at: number) => run!.marks[at]![mark];
    const acts: Record<string, () => void> = {
      ArrowRight: () => choose(index + 1),
      ArrowLeft: () => choose(index - 1),
      j: () => choose(index + 1),
      k: () => choose(index - 1),
      ArrowDown: () => main.current?.scrollBy(0, 90),
      ArrowUp: () => main.current?.scrollBy(0, -90),
      Home: () => choose(0),
      End: () => choose(run!.length - 1),
      PageDown: () => choose(index + 10),
      PageUp: () => choose(index - 10),
      c: () => toStep(index, 1, marked('compaction')),
      C: () => toStep(index, -1, marked('compaction')),
      e: () => toStep(index, 1, marked('error')),
      E: () => toStep(index, -1, marked('error')),
      b: () => toStep(index, 1, marked('miss')),
      B: () => toStep(index, -1, marked('miss')),
      n: () => jumpOn(1),
      N: () => jumpOn(-1),
      J: () => toBlock(1),
      K: () => toBlock(-1),
      t: () => panel('steps'),
    };
    if (live) {
      acts.l = () => panel('sessions');
      acts.s = () => selectorBox.current?.focus();
      acts.f = () => setFollow(!follow);
      acts.m = () => toStep(index, 1, (at) => matched.fresh.has(at));
      acts.M = () => toStep(index, -1, (at) => matched.fresh.has(at));
    }
    SHOWN.forEach((name, at) => (acts[String(at + 1)] = () => tab(name)));
    if (!run || run.length === 0) for (const name of Object.keys(acts)) if (!['l', 't', 's'].includes(name)) delete acts[name];
    acts['/'] = () => searchBox.current?.focus();
    acts['?'] = () => help.current?.showModal();
    const act = acts[event.key];
    if (!act) return;
    // Within a tab list the arrows move the tab.
    if (target.closest('[role=tablist]') && event.key.startsWith('Arrow')) {
      const group = target.closest('[role=tablist]')!;
      const buttons = [...group.querySelectorAll<HTMLElement>('[role=tab]')];
      const next = buttons[(buttons.indexOf(target) + (event.key === 'ArrowRight' ? 1 : buttons.length - 1)) % buttons.length];
      next?.click();
      next?.focus();
      event.preventDefault();
      return;
    }
    event.preventDefault();
    if (document.activeElement === document.body) toStrip();
    act();
  };
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    const key = (event: KeyboardEvent) => latest.current(event);
    document.addEventListener('keydown', key);
    return () => document.removeEventListener('keydown', key);
  }, []);

  // --- The page ---

  const chosenRow = rows.findIndex((row) => row.name === address.session);
  useEffect(() => {
    if (chosenRow >= 0) setActiveRow(chosenRow);
  }, [chosenRow]);
  const pick = (at: number) => {
    const row = rows[at];
    if (!row) return;
    setDrawer(false);
    if (row.name !== address.session) {
      setRun(null);
      patch({ session: row.name, step: null, block: null, other: null });
    }
  };
  const props: ViewProps | null = run && index >= 0 ? { run, index, look, go: (to, block, tab) => choose(to, { block, ...(tab ? { tab } : {}) }) } : null;
  const count = hits.length;
  const matches = address.search === '' ? '' : count === 0 ? 'no match' : `${hit >= 0 ? `${amount(hit + 1)} of ` : ''}${amount(count)}${more ? '+' : ''} ${count === 1 ? 'match' : 'matches'}`;
  return (
    <>
      <header class="top">
        <div class="title">
          <button type="button" class="menu" aria-expanded={drawer} aria-controls="side" onClick={() => setDrawer(!drawer)}>
            {live ? 'Sessions' : 'Steps'}
          </button>
          <h1 title={run ? visible(run.data.title) : undefined}>{run ? visible(run.data.about[0] ?? run.data.title) : 'pactql'}</h1>
          {live && (
            <span class={'live ' + (open ? 'on' : 'off')} role="status">
              {open ? (fresh > 0 ? '' : 'live') : 'not connected'}
            </span>
          )}
          {fresh > 0 && (
            <button type="button" class="fresh" onClick={() => choose(run!.length - 1)}>
              {counted(fresh, 'new step')}
            </button>
          )}
          {live && (
            <button type="button" aria-pressed={follow} title="Move to steps as they come (f)" onClick={() => setFollow(!follow)}>
              Follow
            </button>
          )}
          <button type="button" onClick={() => help.current?.showModal()}>
            Keys (?)
          </button>
        </div>
        {run && <Facts run={run} />}
        <div class="tools">
          <form
            role="search"
            onSubmit={(event) => {
              event.preventDefault();
              if (typed.trim() === address.search) jumpOn(1);
              else {
                jumps.current = true;
                patch({ search: typed.trim() });
              }
            }}
          >
            <input
              ref={searchBox}
              id="search"
              type="search"
              aria-label="Search all steps"
              placeholder="Search  (/)"
              autocomplete="off"
              spellcheck={false}
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === 'Enter' && event.shiftKey) {
                  event.preventDefault();
                  jumpOn(-1);
                } else if (event.key === 'Escape') {
                  event.preventDefault();
                  setTyped('');
                  setHit(-1);
                  patch({ search: '' });
                  toStrip();
                }
              }}
            />
            <button type="button" aria-label="Match before" disabled={count === 0} onClick={() => jumpOn(-1)}>
              {'\u2191'}
            </button>
            <button type="button" aria-label="Next match" disabled={count === 0} onClick={() => jumpOn(1)}>
              {'\u2193'}
            </button>
            <span class="count" role="status">
              {matches}
            </span>
          </form>
          {live && name !== null && <SelectorBox session={name} value={address.selector} said={selected.said} box={selectorBox} run={(selector) => patch({ selector })} leave={toStrip} />}
        </div>
      </header>
      {props && <Strip run={props.run} chosen={index} matched={matched.fresh} has={matched.has} choose={choose} />}
      <div class={'columns' + (drawer ? ' drawn' : '')}>
        <nav id="side" class="side" aria-label={live ? 'Sessions and steps' : 'Steps'}>
          {live && (
            <div class="tabs" role="tablist" aria-label="Lists">
              {(['sessions', 'steps'] as const).map((of) => (
                <button key={of} type="button" role="tab" id={'list-' + of} aria-selected={side === of} aria-controls="lists" tabIndex={side === of ? 0 : -1} onClick={() => setSide(of)}>
                  {of === 'sessions' ? `Sessions (${amount(total)})` : `Steps (${amount(run?.length ?? 0)})`}
                </button>
              ))}
            </div>
          )}
          <div id="lists" class="lists" role={live ? 'tabpanel' : undefined} aria-labelledby={live ? 'list-' + side : undefined}>
            {side === 'sessions' ? (
              <>
                <input
                  id="session-search"
                  type="search"
                  aria-label="Search sessions"
                  placeholder="Title, project, agent, model  (l)"
                  value={wanted}
                  autocomplete="off"
                  onInput={(event) => setWanted(event.currentTarget.value)}
                  onKeyDown={(event) => {
                    if (event.key !== 'ArrowDown' && event.key !== 'Enter') return;
                    event.preventDefault();
                    document.getElementById('sessions')?.focus();
                  }}
                />
                <Picker
                  id="sessions"
                  label="Sessions"
                  count={rows.length}
                  of={rows}
                  height={62}
                  keyOf={(at) => rows[at]!.name}
                  active={activeRow}
                  chosen={chosenRow}
                  move={setActiveRow}
                  pick={pick}
                  row={(at) => <Session row={rows[at]!} />}
                />
              </>
            ) : (
              run && (
                <Picker
                  id="steps"
                  label="Steps"
                  count={run.length}
                  of={run}
                  height={46}
                  keyOf={(at) => run.step(at).cycle}
                  active={index}
                  chosen={index}
                  move={choose}
                  pick={(at) => {
                    choose(at);
                    setDrawer(false);
                    toStrip();
                  }}
                  row={(at) => <Step run={run} at={at} />}
                />
              )
            )}
          </div>
        </nav>
        <main ref={main}>
          {error && (
            <p class="failure" role="alert">
              {visible(error)}
            </p>
          )}
          {!run && !error && <p class="quiet">Reading{'\u2026'}</p>}
          {run && run.length === 0 && <p>The session has no steps yet.</p>}
          {props && (
            <>
              <StepHead run={props.run} index={index} />
              <div class="tabs" role="tablist" aria-label="Views of the step">
                {SHOWN.map((of) => (
                  <button
                    key={of}
                    type="button"
                    role="tab"
                    id={'tab-' + of}
                    title={TITLES[of][1]}
                    aria-selected={address.tab === of}
                    aria-controls="panel"
                    tabIndex={address.tab === of ? 0 : -1}
                    onClick={() => tab(of)}
                  >
                    {TITLES[of][0]}
                  </button>
                ))}
              </div>
              <div id="panel" role="tabpanel" aria-labelledby={'tab-' + address.tab} tabIndex={-1}>
                <View key={address.tab} tab={address.tab} props={props} name={name} rows={rows} other={address.other} setOther={(other) => patch({ other })} />
              </div>
            </>
          )}
        </main>
      </div>
      <dialog ref={help} aria-label="Keys">
        <h2>Keys</h2>
        <table>
          <tbody>
            {KEYS.map(([keys, what]) => (
              <tr key={keys}>
                <th scope="row">
                  <kbd>{keys}</kbd>
                </th>
                <td>{what}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {!live && <p class="quiet">This page has one session inside and asks for nothing. Selectors and other runs need `pactql view`.</p>}
        <button type="button" onClick={() => help.current?.close()}>
          Close
        </button>
      </dialog>
    </>
  );
}

const NONE: ReadonlySet<string> = new Set();

interface ViewOf {
  tab: Tab;
  props: ViewProps;
  name: string | null;
  rows: SessionRow[];
  other: string | null;
  setOther: (other: string | null) => void;
}

function View({ tab, props, name, rows, other, setOther }: ViewOf) {
  switch (tab) {
    case 'request':
      return <RequestView {...props} />;
    case 'changes':
      return <ChangesView {...props} />;
    case 'tokens':
      return <TokensView {...props} />;
    case 'cache':
      return <CacheView {...props} />;
    case 'tree':
      return <TreeView {...props} />;
    case 'beside':
      return name === null ? <p class="quiet">This needs `pactql view`.</p> : <BesideView {...props} name={name} rows={rows} other={other} choose={setOther} />;
    default:
      return <NewView {...props} />;
  }
}

function Session({ row }: { row: SessionRow }) {
  const [nanos, setNanos] = useState(row.nanos);
  useEffect(() => {
    let current = true;
    if (row.counted) setNanos(row.nanos);
    else cost(row).then((found) => current && setNanos(found));
    return () => {
      current = false;
    };
  }, [row]);
  const facts = [row.project?.split(/[/\\]/).filter(Boolean).pop(), row.agent, row.when && seconds(row.when).slice(0, 16)].filter(Boolean).map((text) => visible(text!));
  return (
    <>
      <span class="first" title={visible(row.name)}>
        {visible(row.title || row.name)}
      </span>
      <span class="second">{facts.join(' \u00b7 ') || visible(row.name)}</span>
      <span class="second">
        {counted(row.steps, 'step')}
        {nanos !== null && ` \u00b7 ${money(nanos)}`}
      </span>
    </>
  );
}

function Step({ run, at }: { run: Run; at: number }) {
  const marks = run.marks[at]!;
  const { cost, time } = run.step(at);
  return (
    <>
      <span class="first">
        {marks.error && <i class="key error" aria-hidden="true" />}
        {marks.miss && <i class="key miss" aria-hidden="true" />}
        {marks.compaction && <i class="key compaction" aria-hidden="true" />}
        <b>{stepName(run, at)}</b> {happened(run, at)}
      </span>
      <span class="second">
        {amount(sent(run, at))} tokens
        {cost !== undefined && ` \u00b7 ${money(cost)}`}
        {time && ` \u00b7 ${seconds(time).slice(11)}`}
      </span>
    </>
  );
}

const root = document.createElement('div');
root.id = 'app';
document.body.append(root);
render(<App />, root);
