// The tabs of a step: what is new, the whole request, changes, tokens, cache, tree.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Card, type Found } from './blocks';
import type { Run } from './data';
import { List, type ListHandle } from './list';
import { amount, counted, lasting, money, percent, preview, visible } from './words';
import { blockName, blockTitle, REGION_NAMES, REGIONS, stepName } from './words-of';

/** What is found and chosen, for every view that shows blocks. */
export interface Look {
  pattern: RegExp | null;
  /** The current match of the search. */
  hit: { block: number; offset: number } | null;
  /** The ids that the selector matches in this step. */
  matched: ReadonlySet<string>;
  /** The block of the address. */
  chosen: string | null;
  /** Counts up when the chosen block is to be scrolled to. */
  reveal: number;
  href: (block: string) => string;
}

export interface ViewProps {
  run: Run;
  index: number;
  look: Look;
  go: (index: number, block: string | null, tab?: 'new' | 'request' | 'cache') => void;
}

interface Item {
  at: number;
  news: string;
  old?: number;
}
type Entry = { heading: string; title?: string } | Item;

const foundIn = (look: Look, at: number): Found => ({ pattern: look.pattern, hit: look.hit?.block === at ? look.hit.offset : -1 });

/** Cards, of which only those that are seen are in the document. */
function Cards({ run, index, look, entries, cut, empty }: { run: Run; index: number; look: Look; entries: Entry[]; cut: number; empty: string }) {
  const handle = useRef<ListHandle | null>(null);
  const { cycle } = run.step(index);
  useLayoutEffect(() => {
    if (look.reveal === 0) return;
    const at = entries.findIndex((entry) => 'at' in entry && (look.hit ? entry.at === look.hit.block : run.block(entry.at).id === look.chosen));
    if (at >= 0) handle.current?.reveal(at, 'start');
    if (!look.hit) return;
    // The list shows the block first, then the match in it.
    const scroll = () => document.getElementById('hit')?.scrollIntoView({ block: 'center' });
    requestAnimationFrame(() => {
      scroll();
      requestAnimationFrame(scroll);
    });
  }, [look.reveal, index, entries]);
  if (entries.every((entry) => 'heading' in entry)) return <p class="quiet">{empty}</p>;
  return (
    <List
      count={entries.length}
      of={entries}
      handle={handle}
      attributes={{ class: 'cards' }}
      keyOf={(at) => {
        const entry = entries[at]!;
        return 'heading' in entry ? 'h ' + entry.heading : `${entry.news} ${entry.at} ${cut}`;
      }}
      guess={(at) => {
        const entry = entries[at]!;
        if ('heading' in entry) return 36;
        const letters = Math.min(cut, run.block(entry.at).bytes);
        return 52 + Math.ceil(letters / 90 + 1) * 19;
      }}
      item={(at) => {
        const entry = entries[at]!;
        if ('heading' in entry) {
          return (
            <h3 class="region" title={entry.title}>
              {entry.heading}
            </h3>
          );
        }
        const block = run.block(entry.at);
        return (
          <Card
            run={run}
            at={entry.at}
            news={entry.news}
            old={entry.old}
            cut={cut}
            isReply={block.reply === cycle}
            matched={entry.news !== 'removed' && look.matched.has(block.id)}
            current={block.id === look.chosen}
            href={look.href(block.id)}
            {...foundIn(look, entry.at)}
          />
        );
      }}
    />
  );
}

/** How each block of a step came, by its number. */
function newsOf(run: Run, index: number): Map<number, Item> {
  const news = run.news[index]!;
  const found = new Map<number, Item>();
  for (const at of news.added) found.set(at, { at, news: 'added' });
  for (const [old, at] of news.changed) found.set(at, { at, news: 'changed', old });
  for (const at of news.moved) found.set(at, { at, news: 'moved' });
  return found;
}

const NEW_CUT = 20_000;
const CUT = 2_000;

export function NewView({ run, index, look }: ViewProps) {
  const entries = useMemo(() => {
    const news = newsOf(run, index);
    const step = run.step(index);
    const entries: Entry[] = [];
    let part = '';
    for (const at of run.list(index)) {
      const item = news.get(at);
      if (!item || item.news === 'moved') continue;
      const block = run.block(at);
      const next = block.reply === step.cycle ? 'Reply' : block.region === 0 ? 'System' : 'Sent';
      if (next !== part) entries.push({ heading: next + (next === 'Reply' && step.stop ? `, ended by ${visible(step.stop)}` : '') });
      part = next;
      // In the first step everything is new.
      entries.push(index === 0 ? { at, news: '' } : item);
    }
    return entries;
  }, [run, index]);
  const { removed } = run.news[index]!;
  return (
    <>
      {removed.length > 0 && (
        <p class="quiet">
          {counted(removed.length, 'block')} of {stepName(run, index - 1)} {removed.length === 1 ? 'is' : 'are'} gone: see Changes.
        </p>
      )}
      <Cards run={run} index={index} look={look} entries={entries} cut={NEW_CUT} empty="Nothing is new in this step." />
    </>
  );
}

export function RequestView({ run, index, look }: ViewProps) {
  const step = run.step(index);
  const entries = useMemo(() => {
    const news = newsOf(run, index);
    const entries: Entry[] = [];
    let part = '';
    for (const at of run.list(index)) {
      const block = run.block(at);
      const region = REGIONS[block.region] ?? '';
      const next = block.reply === step.cycle ? 'reply' : region;
      if (next !== part) entries.push({ heading: next, title: REGION_NAMES[block.region] });
      part = next;
      entries.push({ at, news: index === 0 ? '' : (news.get(at)?.news ?? '') });
    }
    return entries;
  }, [run, index]);
  const parameters = step.parameters === undefined ? '' : (run.data.names[step.parameters] ?? '');
  return (
    <>
      {parameters && (
        <p class="parameters">
          <span class="quiet">parameters </span>
          <code>{visible(parameters)}</code>
        </p>
      )}
      <Cards run={run} index={index} look={look} entries={entries} cut={CUT} empty="The request has no blocks." />
    </>
  );
}

export function ChangesView({ run, index, look }: ViewProps) {
  const entries = useMemo(() => {
    const { added, removed, changed, moved } = run.news[index]!;
    const group = (heading: string, items: Item[]): Entry[] => (items.length ? [{ heading: `${heading} (${items.length})` }, ...items] : []);
    return [
      ...group('Changed', changed.map(([old, at]) => ({ at, old, news: 'changed' }))),
      ...group('Gone', removed.map((at) => ({ at, news: 'removed' }))),
      ...group('New', added.map((at) => ({ at, news: 'added' }))),
      ...group('Moved', moved.map((at) => ({ at, news: 'moved' }))),
    ];
  }, [run, index]);
  const parameters = (at: number) => {
    const { parameters } = run.step(at);
    return parameters === undefined ? '' : (run.data.names[parameters] ?? '');
  };
  const differ = index > 0 && parameters(index) !== parameters(index - 1);
  return (
    <>
      {differ && (
        <p class="parameters">
          <span class="quiet">parameters </span>
          <del>{visible(parameters(index - 1))}</del> <ins>{visible(parameters(index))}</ins>
        </p>
      )}
      <Cards run={run} index={index} look={look} entries={entries} cut={CUT} empty={index === 0 ? 'There is no step before it.' : `Nothing changed since ${stepName(run, index - 1)}.`} />
    </>
  );
}

export function TokensView({ run, index, go }: ViewProps) {
  const list = useMemo(() => run.list(index), [run, index]);
  const total = list.reduce((sum, at) => sum + run.block(at).tokens, 0);
  const groups = useMemo(
    () =>
      (
        [
          ['region', 'part', (at) => REGIONS[run.block(at).region] ?? ''],
          ['role', 'role', (at) => visible(run.block(at).role)],
          ['kind', 'kind', (at) => visible(run.block(at).kind) || 'none'],
          ['tool', 'tool', (at) => visible(run.block(at).tool) || 'no tool'],
        ] as [string, string, (at: number) => string][]
      ).map(([key, title, of]) => {
        const sums = new Map<string, [number, number]>();
        for (const at of list) {
          const sum = sums.get(of(at)) ?? [0, 0];
          sums.set(of(at), [sum[0] + run.block(at).tokens, sum[1] + 1]);
        }
        const rows = [...sums].sort((a, b) => b[1][0] - a[1][0] || (a[0] < b[0] ? -1 : 1));
        return { key, title, rows };
      }),
    [run, list],
  );
  const largest = useMemo(() => [...list].sort((a, b) => run.block(b).tokens - run.block(a).tokens || a - b).slice(0, 15), [run, list]);
  return (
    <>
      <p class="quiet">
        {counted(total, 'token')} counted here by {run.data.tokenizer}
        {run.data.estimate ? ', an estimate' : ''}; framing of messages is not counted.
      </p>
      <div class="tables">
        {groups.map(({ key, title, rows }) => (
          <table class="bars" key={key}>
            <caption>Tokens by {title}</caption>
            <thead>
              <tr>
                <th scope="col">{title}</th>
                <th scope="col" class="number">
                  tokens
                </th>
                <th scope="col" class="number">
                  share
                </th>
                <th scope="col" class="number">
                  blocks
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, 40).map(([name, [tokens, number]]) => (
                <tr key={name}>
                  <th scope="row">
                    {name}
                    <i class="bar" style={{ width: (tokens * 100) / Math.max(1, rows[0]![1][0]) + '%' }} />
                  </th>
                  <td class="number">{amount(tokens)}</td>
                  <td class="number">{percent(tokens, total)}</td>
                  <td class="number">{amount(number)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
        <table class="bars">
          <caption>Largest blocks</caption>
          <thead>
            <tr>
              <th scope="col">block</th>
              <th scope="col" class="number">
                tokens
              </th>
              <th scope="col" class="number">
                share
              </th>
            </tr>
          </thead>
          <tbody>
            {largest.map((at) => {
              const block = run.block(at);
              return (
                <tr key={at}>
                  <th scope="row">
                    <button type="button" class="link" onClick={() => go(index, block.id, 'request')}>
                      {blockName(block)}: {preview(run.text(block.text), 60)}
                    </button>
                    <i class="bar" style={{ width: (block.tokens * 100) / Math.max(1, run.block(largest[0]!).tokens) + '%' }} />
                  </th>
                  <td class="number">{amount(block.tokens)}</td>
                  <td class="number">{percent(block.tokens, total)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

export function CacheView({ run, index, go }: ViewProps) {
  const { prefix, usage } = run.step(index);
  const all = useMemo(() => run.data.steps.flatMap((_, at) => (run.marks[at]!.miss ? [at] : [])), [run]);
  const breaks = all.filter((at) => run.step(at).prefix?.broken);
  const unread = all.filter((at) => run.step(at).prefix?.unread);
  const cost = unread.reduce((sum, at) => sum + (run.step(at).prefix?.unread?.cost ?? 0), 0);
  const fact = (name: string, ...value: any[]) => (
    <tr>
      <th scope="row">{name}</th>
      <td>{value}</td>
    </tr>
  );
  const { broken } = prefix ?? {};
  const missed = prefix?.unread;
  const openBlock = (id: string) => go(run.find(index, id) >= 0 || index === 0 ? index : index - 1, id, 'request');
  return (
    <>
      {run.data.no_prefixes && <p class="quiet">Requests cannot be compared: {visible(run.data.no_prefixes)}</p>}
      {prefix && (
        <table class="facts-table">
          <caption>The prompt cache at {stepName(run, index)}</caption>
          <tbody>
            {fact('request', `${counted(prefix.bytes, 'byte')}, ${counted(prefix.tokens, 'token')}, as ${visible(run.data.provider)} is sent it`)}
            {usage[0] !== null && fact('read', `${amount(usage[1] ?? 0)} of ${amount(usage[0])} tokens, ${percent(usage[1] ?? 0, usage[0])}`)}
            {usage[2] ? fact('written', counted(usage[2], 'token')) : null}
            {fact('kept', prefix.percent === undefined ? 'the first request has none before it' : `${prefix.percent} % of the request before, ${counted(prefix.shared, 'byte')}`)}
            {prefix.percent !== undefined && !broken && fact('break', 'none: the request before is the start of this one')}
            {broken && (
              <>
                {fact('break', <strong class="broken">{visible(broken.cause)}</strong>)}
                {fact('where', `byte ${amount(broken.at)}, ${visible(broken.place)}`)}
                {broken.block !== undefined &&
                  fact(
                    'block',
                    <button type="button" class="link" onClick={() => openBlock(run.data.ids[broken.block!] ?? '')}>
                      {visible(run.data.ids[broken.block] ?? '')}
                    </button>,
                  )}
                {fact('mend', broken.mend)}
                {prefix.again > 0 && fact('again', counted(prefix.again, 'token') + ' that both have')}
                {broken.older !== undefined && fact('before', <code>{visible(broken.older) || '(the end)'}</code>)}
                {broken.newer !== undefined && fact('now', <code>{visible(broken.newer) || '(the end)'}</code>)}
              </>
            )}
            {missed && (
              <>
                {fact('miss', <strong class="broken">{`the provider read ${amount(missed.read)} of ${amount(missed.readable)} tokens that it could have`}</strong>)}
                {missed.cost !== undefined && fact('cost', money(missed.cost) + ' more')}
                {fact('likely', missed.cause + (missed.gap === undefined ? '' : `, ${lasting(missed.gap)} after the reply before`))}
                {fact('mend', missed.mend)}
              </>
            )}
          </tbody>
        </table>
      )}
      {!prefix && !run.data.no_prefixes && <p class="quiet">No request was sent in this step.</p>}
      <h3>
        {counted(breaks.length, 'break')} and {amount(unread.length)} {unread.length === 1 ? 'miss' : 'misses'} in this session
        {cost > 0 ? `, ${money(cost)} more` : ''}
      </h3>
      <ul class="rows">
        {all.map((at) => {
          const { broken, unread, percent: kept } = run.step(at).prefix!;
          return (
            <li key={at} class={at === index ? 'chosen' : undefined}>
              <button type="button" class="link" aria-current={at === index ? 'step' : undefined} onClick={() => go(at, null, 'cache')}>
                {stepName(run, at)}
              </button>{' '}
              {broken ? `${visible(broken.cause)}, ${kept ?? 0} % kept` : `${unread!.cause}: ${amount(unread!.readable - unread!.read)} tokens not read`}
              {unread?.cost ? `, ${money(unread.cost)} more` : ''}
            </li>
          );
        })}
      </ul>
    </>
  );
}

interface TreeRow {
  key: string;
  level: number;
  /** What is shown is made when it is seen. */
  name: () => string;
  title: () => string;
  side: () => string;
  news: string;
  open?: boolean;
  block?: number;
}

export function TreeView({ run, index, look, go }: ViewProps) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState(0);
  const handle = useRef<ListHandle | null>(null);
  const rows = useMemo(() => {
    const news = newsOf(run, index);
    const list = run.list(index);
    const turns = new Map<number, number>();
    for (const at of list) {
      const { turn } = run.block(at);
      if (turn !== null && !turns.has(turn)) turns.set(turn, turns.size + 1);
    }
    const groups = new Map<string, { tokens: number; blocks: number }>();
    const add = (key: string, at: number) => {
      let sum = groups.get(key);
      if (!sum) groups.set(key, (sum = { tokens: 0, blocks: 0 }));
      sum.tokens += run.block(at).tokens;
      sum.blocks++;
    };
    for (const at of list) {
      const block = run.block(at);
      add('r' + block.region, at);
      if (block.turn !== null) add('t' + block.turn, at);
    }
    const rows: TreeRow[] = [];
    let [region, turn] = [-1, null as number | null];
    const side = (key: string) => () => `${amount(groups.get(key)!.tokens)} tokens, ${counted(groups.get(key)!.blocks, 'block')}`;
    for (const at of list) {
      const block = run.block(at);
      if (block.region !== region) {
        const key = 'r' + block.region;
        rows.push({ key, level: 1, name: () => REGIONS[block.region] ?? '', title: () => REGION_NAMES[block.region] ?? '', side: side(key), news: '', open: !closed.has(key) });
        [region, turn] = [block.region, null];
      }
      if (closed.has('r' + block.region)) continue;
      if (block.turn !== null && block.turn !== turn) {
        const key = 't' + block.turn;
        const number = turns.get(block.turn)!;
        const id = run.data.turns[block.turn] ?? '';
        rows.push({ key, level: 2, name: () => `turn ${number} of ${turns.size}`, title: () => `mt ${id}, depth ${turns.size - number + 1}`, side: side(key), news: '', open: !closed.has(key) });
      }
      turn = block.turn;
      if (block.turn !== null && closed.has('t' + block.turn)) continue;
      rows.push({
        key: 'b' + at,
        level: block.turn === null ? 2 : 3,
        name: () => blockName(block),
        title: () => blockTitle(run, block),
        side: () => `${amount(block.tokens)} tokens`,
        news: index === 0 ? '' : (news.get(at)?.news ?? ''),
        block: at,
      });
    }
    return rows;
  }, [run, index, closed]);
  const at = Math.min(active, rows.length - 1);
  useEffect(() => {
    if (look.chosen === null) return;
    const found = rows.findIndex((row) => row.block !== undefined && run.block(row.block).id === look.chosen);
    if (found >= 0) move(found);
  }, [look.reveal]);
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setActive(next);
    handle.current?.reveal(next);
  };
  const toggle = (row: TreeRow, open?: boolean) => {
    if (row.open === undefined) return;
    const next = new Set(closed);
    if (open ?? !row.open) next.delete(row.key);
    else next.add(row.key);
    setClosed(next);
  };
  const act = (row: TreeRow) => (row.block === undefined ? toggle(row) : go(index, run.block(row.block).id, 'request'));
  const key = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const parent = () => {
      for (let up = at; up >= 0; up--) if (rows[up]!.level < row.level) return up;
      return at;
    };
    const acts: Record<string, () => void> = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      PageDown: () => move(at + 10),
      PageUp: () => move(at - 10),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      ArrowRight: () => (row.open === false ? toggle(row, true) : row.open && move(at + 1)),
      ArrowLeft: () => (row.open ? toggle(row, false) : move(parent())),
      Enter: () => act(row),
      ' ': () => act(row),
    };
    const found = acts[event.key];
    if (!found) return;
    event.preventDefault();
    event.stopPropagation();
    found();
  };
  if (rows.length === 0) return <p class="quiet">The request has no blocks.</p>;
  return (
    <List
      count={rows.length}
      of={rows}
      handle={handle}
      keyOf={(n) => rows[n]!.key}
      guess={() => 28}
      attributes={{ class: 'tree', role: 'tree', tabIndex: 0, 'aria-label': 'Tree of ' + stepName(run, index), 'aria-activedescendant': 'node-' + rows[at]!.key, onKeyDown: key as any }}
      item={(n) => {
        const row = rows[n]!;
        const block = row.block === undefined ? undefined : run.block(row.block);
        const matched = block !== undefined && look.matched.has(block.id);
        return (
          <div
            role="treeitem"
            id={'node-' + row.key}
            class={`node level-${row.level} ${row.news}${n === at ? ' active' : ''}${matched ? ' matched' : ''}`}
            aria-level={row.level}
            aria-expanded={row.open}
            aria-selected={n === at}
            title={visible(row.title())}
            onClick={() => {
              setActive(n);
              act(row);
            }}
          >
            <span class="twist" aria-hidden="true">
              {row.open === undefined ? '' : row.open ? '\u25be' : '\u25b8'}
            </span>
            <span class="what">{row.name()}</span>
            {row.news && <span class={'flag ' + row.news}>{row.news === 'added' ? 'new' : row.news}</span>}
            {block && <span class="preview">{preview(run.text(block.text))}</span>}
            <span class="size">{row.side()}</span>
          </div>
        );
      }}
    />
  );
}
