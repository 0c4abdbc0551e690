// Blocks: what was said by whom, with matches marked and long texts cut.
// Texts become text nodes and nothing else: no markup, no link, no picture is made of them.

import { useMemo, useReducer } from 'preact/hooks';
import type { Block, Run } from './data';
import { amount, counted, visible, words } from './words';
import { blockName, blockTitle } from './words-of';

/** What is found in the text: a pattern, and where the current match of this block begins, if it is one of its. */
export interface Found {
  pattern: RegExp | null;
  hit: number;
}

const PIECE = 30_000;
const MOST_MARKS = 5_000;
/** What was opened whole stays so, also when it leaves the window. */
const opened = new WeakMap<Run, Set<string>>();

function openedOf(run: Run): Set<string> {
  let set = opened.get(run);
  if (!set) opened.set(run, (set = new Set()));
  return set;
}

function marksOf(text: string, pattern: RegExp | null): [number, number][] {
  const marks: [number, number][] = [];
  if (!pattern) return marks;
  for (const match of text.matchAll(pattern)) {
    if (match[0] === '') break;
    marks.push([match.index, match.index + match[0].length]);
    if (marks.length >= MOST_MARKS) break;
  }
  return marks;
}

/** A text in pieces that the browser lays out when they are seen. */
export function Text({ text, pattern, hit }: { text: string } & Found) {
  const pieces = useMemo(() => {
    const marks = marksOf(text, pattern);
    const made = [];
    let mark = 0;
    for (let from = 0; from < text.length || from === 0; ) {
      let to = Math.min(text.length, from + PIECE);
      if (to < text.length) {
        const line = text.lastIndexOf('\n', to);
        if (line > from) to = line + 1;
        else if (/[\ud800-\udbff]/.test(text[to - 1]!)) to++;
        // A match stays whole.
        const cut = marks.find(([start, end]) => start < to && end > to);
        if (cut) to = cut[1];
      }
      const parts: any[] = [];
      let at = from;
      for (; mark < marks.length && marks[mark]![0] < to; mark++) {
        const [start, end] = marks[mark]!;
        if (start > at) parts.push(visible(text.slice(at, start)));
        const current = start === hit;
        parts.push(
          <mark key={start} class={current ? 'current' : undefined} id={current ? 'hit' : undefined}>
            {visible(text.slice(start, end))}
          </mark>,
        );
        at = end;
      }
      if (at < to) parts.push(visible(text.slice(at, to)));
      const lines = Math.ceil((to - from) / 90);
      made.push(
        <div key={from} class={text.length > PIECE ? 'piece' : undefined} style={text.length > PIECE ? { containIntrinsicSize: `auto ${lines * 19}px` } : undefined}>
          {parts}
        </div>,
      );
      if (to === from) break;
      from = to;
    }
    return made;
  }, [text, pattern, hit]);
  return (
    <div class="text" dir="auto">
      {pieces}
    </div>
  );
}

interface CardProps extends Found {
  run: Run;
  at: number;
  /** Added, changed, removed, moved, or as before. */
  news: string;
  old?: number;
  /** Texts longer than this are cut. */
  cut: number;
  isReply: boolean;
  /** The selector matches it. */
  matched: boolean;
  current: boolean;
  href: string;
}

const SIGNS: Record<string, string> = { added: '+', removed: '\u2212', changed: '~', moved: '\u2192' };
const NEWS: Record<string, string> = { added: 'new', removed: 'gone', changed: 'changed', moved: 'moved' };

export function Card({ run, at, news, old, cut, isReply, matched, current, href, pattern, hit }: CardProps) {
  const [, again] = useReducer((n: number, _: null) => n + 1, 0);
  const block = run.block(at);
  const kept = openedOf(run);
  const key = 'text ' + block.text;
  const folds = block.kind === 'call' || block.kind === 'tool';
  const raw = kept.has('raw ' + block.text);
  const text = folds && !raw ? run.read(block) : run.text(block.text);
  const whole = text.length <= cut || kept.has(key) || hit >= cut;
  const toggle = (of: string) => {
    if (!kept.delete(of)) kept.add(of);
    again(null);
  };
  const name = blockName(block);
  const classes = ['card', news, block.region === 0 ? 'system' : '', `by-${/^[a-z]+$/.test(block.role) ? block.role : 'other'}`];
  if (block.error) classes.push('failed');
  if (matched) classes.push('matched');
  if (current) classes.push('chosen');
  return (
    <article class={classes.filter(Boolean).join(' ')} tabIndex={-1} data-block={at} aria-label={[NEWS[news], name, block.error ? 'error' : '', matched ? 'matches' : ''].filter(Boolean).join(', ')}>
      <header>
        <h4 title={blockTitle(run, block)}>
          {SIGNS[news] && (
            <span class={'sign ' + news} aria-hidden="true">
              {SIGNS[news]}
            </span>
          )}
          {name}
        </h4>
        {news && <span class={'flag ' + news}>{NEWS[news]}</span>}
        {isReply && <span class="flag">reply</span>}
        {block.error && <span class="flag failed">error</span>}
        {matched && <span class="flag matched">matches</span>}
        <span class="size" title={counted(block.bytes, 'byte')}>
          {counted(block.tokens, 'token')}
        </span>
        {folds && (
          <button type="button" class="plain" aria-pressed={raw} onClick={() => toggle('raw ' + block.text)}>
            as sent
          </button>
        )}
        <a class="address" href={href} aria-label={'Address of this block: ' + name} title="The address of this block">
          #
        </a>
      </header>
      {old !== undefined ? <Changed run={run} old={run.block(old)} now={block} /> : <Text text={whole ? text : text.slice(0, cut)} pattern={pattern} hit={hit} />}
      {old === undefined && text.length > cut && (
        <button type="button" class="more" onClick={() => toggle(key)} disabled={hit >= cut}>
          {whole ? 'Show less' : `Show all ${amount(text.length)} characters`}
        </button>
      )}
    </article>
  );
}

function Changed({ run, old, now }: { run: Run; old: Block; now: Block }) {
  const facts = [];
  if (old.role !== now.role) facts.push(`role ${visible(old.role)} \u2192 ${visible(now.role)}`);
  if (old.kind !== now.kind) facts.push(`kind ${visible(old.kind)} \u2192 ${visible(now.kind)}`);
  if (old.bytes !== now.bytes) facts.push(`${amount(old.bytes)} \u2192 ${counted(now.bytes, 'byte')}`);
  return (
    <>
      {facts.length > 0 && <p class="quiet">{facts.join(' \u00b7 ')}</p>}
      <Words older={run.read(old)} newer={run.read(now)} />
    </>
  );
}

/** Changed words, with at most three lines around each change. */
export function Words({ older, newer }: { older: string; newer: string }) {
  const parts = useMemo(() => {
    // What both begin and end with is no work for the comparison of words.
    let head = 0;
    const least = Math.min(older.length, newer.length);
    while (head < least && older.charCodeAt(head) === newer.charCodeAt(head)) head++;
    while (head > 0 && !/\s/.test(older[head - 1]!)) head--;
    let tail = 0;
    while (tail < least - head && older.charCodeAt(older.length - 1 - tail) === newer.charCodeAt(newer.length - 1 - tail)) tail++;
    while (tail > 0 && !/\s/.test(older[older.length - tail]!)) tail--;
    const [a, b] = [older.slice(head, older.length - tail), newer.slice(head, newer.length - tail)];
    let runs = words(a, b);
    // Texts with little in common are read one after the other.
    const letters = (text: string) => text.replace(/[^\p{L}\p{N}]+/gu, '').length;
    const equal = runs.reduce((sum, [sign, text]) => sum + (sign === '=' ? letters(text) : 0), 0);
    if (equal * 4 < Math.min(letters(a), letters(b))) {
      runs = [
        ['-', a],
        ['+', '\n' + b],
      ];
    }
    const start = newer.slice(0, head);
    const end = newer.slice(newer.length - tail);
    if (start) runs[0]?.[0] === '=' ? (runs[0][1] = start + runs[0][1]) : runs.unshift(['=', start]);
    const last = runs[runs.length - 1];
    if (end) last?.[0] === '=' ? (last[1] += end) : runs.push(['=', end]);
    return runs.flatMap(([sign, text], at): any[] => {
      if (sign !== '=') {
        const shown = text.length > 20_000 ? text.slice(0, 20_000) + ` \u2026 ${amount(text.length - 20_000)} more characters` : text;
        const Tag = sign === '+' ? 'ins' : 'del';
        return [<Tag key={at}>{visible(shown)}</Tag>];
      }
      const lines = text.split('\n');
      const before = at === 0 ? 0 : 4;
      // A line feed at the end begins no line.
      const behind = at < runs.length - 1 ? 4 : lines[lines.length - 1] === '' ? 1 : 0;
      const left = lines.length - before - behind;
      if (left < 2) return [visible(text.length > 2000 ? text.slice(0, 900) + ' \u2026 ' + text.slice(-900) : text)];
      const made: any[] = [];
      if (before) made.push(visible(lines.slice(0, before).join('\n') + '\n'));
      made.push(
        <span key={at} class="quiet">
          {`\u22ef ${counted(left, 'line')} as before\n`}
        </span>,
      );
      if (behind) made.push(visible(lines.slice(-behind).join('\n')));
      return made;
    });
  }, [older, newer]);
  return (
    <div class="text" dir="auto">
      {parts.length ? parts : <span class="quiet">the texts are equal</span>}
    </div>
  );
}
