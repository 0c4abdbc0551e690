// Texts in words: numbers, money, times, what cannot be seen, and which words of two texts differ.
// This file knows texts. It must not know elements or sessions.

// What has no shape, or turns the direction of what follows.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

/** A text in which every character can be seen. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (letter) => {
    const code = letter.codePointAt(0)!;
    if (code < 32) return String.fromCharCode(0x2400 + code);
    return '\u27e8U+' + code.toString(16).toUpperCase().padStart(4, '0') + '\u27e9';
  });
}

/** The start of a text on one line. */
export const preview = (text: string, letters = 160) => visible(text.slice(0, letters).replace(/\s+/g, ' '));

/** A number with commas: results do not depend on a locale. */
export const amount = (number: number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',');

export const counted = (number: number, thing: string) => amount(number) + ' ' + thing + (number === 1 ? '' : 's');

export const percent = (part: number, of: number) => (of === 0 ? 0 : Math.round((part * 1000) / of) / 10) + ' %';

/** Few letters for a number: 12.3k, 4.1M. */
export function short(number: number): string {
  if (number < 1000) return String(Math.round(number));
  if (number < 1e6) return (number / 1e3).toFixed(number < 1e4 ? 1 : 0) + 'k';
  return (number / 1e6).toFixed(number < 1e7 ? 1 : 0) + 'M';
}

/** Nano-dollars as dollars, with the digits that matter. */
export function money(nanos: number): string {
  const dollars = nanos / 1e9;
  if (dollars === 0) return '$0';
  return '$' + (dollars >= 1 ? dollars.toFixed(2) : dollars >= 0.01 ? dollars.toFixed(3) : dollars.toPrecision(2));
}

/** `2026-04-07T09:00:40Z` as `2026-04-07 09:00:40`. */
export const seconds = (time: string) => visible(time).slice(0, 19).replace('T', ' ');

/** Seconds as `40 s`, `12 min`, `3 h`, `2 d`. */
export function lasting(seconds: number): string {
  if (seconds < 120) return Math.round(seconds) + ' s';
  if (seconds < 7200) return Math.round(seconds / 60) + ' min';
  if (seconds < 172800) return Math.round(seconds / 3600) + ' h';
  return Math.round(seconds / 86400) + ' d';
}

export type Run = ['=' | '+' | '-', string];

/** The fewest words to remove and add; texts that differ in too much differ as a whole. */
export function words(older: string, newer: string): Run[] {
  const cut = (text: string) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  const [a, b] = [cut(older), cut(newer)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const runs: Run[] = [['=', a.slice(0, head).join('')]];
  runs.push(...shortest(a.slice(head, a.length - tail), b.slice(head, b.length - tail)));
  runs.push(['=', a.slice(a.length - tail).join('')]);
  const joined: Run[] = [];
  for (const [sign, text] of runs) {
    if (text === '') continue;
    const last = joined[joined.length - 1];
    if (last && last[0] === sign) last[1] += text;
    else joined.push([sign, text]);
  }
  return joined;
}

/** Myers' shortest edit script, up to 400 edits. */
function shortest(a: string[], b: string[]): Run[] {
  const most = Math.min(a.length + b.length, 400);
  const ends = new Map([[1, 0]]);
  const end = (k: number) => ends.get(k) ?? -1;
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= most; edits++) {
    trace.push(new Map(ends));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && end(k - 1) < end(k + 1));
      let x = down ? end(k + 1) : end(k - 1) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      ends.set(k, x);
      if (x >= a.length && x - k >= b.length) return script(a, b, trace);
    }
  }
  return [
    ['-', a.join('')],
    ['+', b.join('')],
  ];
}

function script(a: string[], b: string[], trace: Map<number, number>[]): Run[] {
  const runs: Run[] = [];
  let [x, y] = [a.length, b.length];
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const ends = trace[edits]!;
    const end = (k: number) => ends.get(k) ?? -1;
    const k = x - y;
    const down = k === -edits || (k !== edits && end(k - 1) < end(k + 1));
    const before = edits === 0 ? 0 : down ? end(k + 1) : end(k - 1);
    const start = edits === 0 ? 0 : before - (down ? k + 1 : k - 1);
    while (x > before && y > start) {
      runs.push(['=', a[--x]!]);
      y--;
    }
    if (edits > 0) runs.push(down ? ['+', b[--y]!] : ['-', a[--x]!]);
  }
  return runs.reverse();
}

/** A pattern for a text as it was typed; letters' case does not count. */
export function pattern(typed: string): RegExp {
  return new RegExp(typed.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu');
}
