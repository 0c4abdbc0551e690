// A long list of which only what is seen is in the document. Heights are guessed until they were seen.

import type { ComponentChildren, HTMLAttributes } from 'preact';
import { useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks';

export interface ListHandle {
  /** Brings an item into view. */
  reveal(at: number, where?: 'start' | 'nearest'): void;
}

interface Props {
  count: number;
  /** What the items are made of: another one is another list. */
  of: unknown;
  /** The key of an item; heights are remembered by it. */
  keyOf: (at: number) => string;
  guess: (at: number) => number;
  item: (at: number) => ComponentChildren;
  /** Called once with what moves the list. */
  handle?: { current: ListHandle | null };
  attributes?: HTMLAttributes<HTMLDivElement> & Record<string, unknown>;
}

const BEYOND = 500;

/** The element that scrolls around one. */
function scroller(element: HTMLElement): HTMLElement {
  for (let at: HTMLElement | null = element; at; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  }
  return document.documentElement;
}

/** Which part of a list is seen. */
function seen(element: HTMLElement, around: HTMLElement) {
  if (around === element) return { top: element.scrollTop, height: element.clientHeight };
  const box = around === document.documentElement ? 0 : around.getBoundingClientRect().top;
  return { top: box - element.getBoundingClientRect().top, height: around.clientHeight };
}

export function List({ count, of, keyOf, guess, item, handle, attributes }: Props) {
  const root = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const place = useRef({ top: 0, height: 900 });
  const wanted = useRef<{ at: number; tries: number; where: 'start' | 'nearest' } | null>(null);
  const [, again] = useReducer((n: number, _: null) => n + 1, 0);
  const measured = useRef(0);

  const offsets = useMemo(() => {
    const offsets = new Float64Array(count + 1);
    for (let at = 0; at < count; at++) offsets[at + 1] = offsets[at]! + (heights.current.get(keyOf(at)) ?? guess(at));
    return offsets;
  }, [of, count, measured.current]);
  const total = offsets[count]!;
  const { top, height } = place.current;
  let from = after(offsets, top - BEYOND);
  let to = Math.min(count, after(offsets, top + height + BEYOND) + 1);
  const goal = wanted.current;
  const forced = goal !== null && (goal.at < from || goal.at >= to);
  if (goal && forced) {
    from = Math.max(0, goal.at - 3);
    to = Math.min(count, goal.at + 12);
  }

  useLayoutEffect(() => {
    const element = root.current!;
    const around = scroller(element);
    const look = () => {
      const next = seen(element, around);
      const moved = Math.abs(next.top - place.current.top) > BEYOND / 2 || Math.abs(next.height - place.current.height) > 50;
      if (moved) {
        place.current = next;
        again(null);
      }
    };
    const target: EventTarget = around === document.documentElement ? window : around;
    target.addEventListener('scroll', look, { passive: true });
    window.addEventListener('resize', look);
    look();
    return () => {
      target.removeEventListener('scroll', look);
      window.removeEventListener('resize', look);
    };
  }, []);

  useLayoutEffect(() => {
    const element = root.current!;
    let differs = false;
    const measure = () => {
      differs = false;
      for (const child of element.children) {
        const { key } = (child as HTMLElement).dataset;
        if (key === undefined) continue;
        const found = child.getBoundingClientRect().height;
        const known = heights.current.get(key) ?? guess(Number((child as HTMLElement).dataset.at));
        if (found > 0 && Math.abs(known - found) > 1) {
          heights.current.set(key, found);
          measured.current++;
          differs = true;
        }
      }
    };
    measure();
    const goal = wanted.current;
    // A list that is hidden has its goal until it is seen.
    if (goal && element.getClientRects().length > 0) {
      const child = element.querySelector<HTMLElement>(`:scope > [data-at="${goal.at}"]`);
      child?.scrollIntoView({ block: goal.where });
      if (!differs || --goal.tries < 0) wanted.current = null;
      place.current = seen(element, scroller(element));
      if (forced) again(null);
    }
    if (differs) again(null);
    // Texts that are opened, and a window that changes its width.
    const watch = new ResizeObserver(() => {
      measure();
      const next = seen(element, scroller(element));
      if (differs || next.height !== place.current.height) {
        place.current = next;
        again(null);
      }
    });
    watch.observe(element);
    for (const child of element.children) watch.observe(child);
    return () => watch.disconnect();
  });

  if (handle) {
    handle.current = {
      reveal(at, where = 'nearest') {
        wanted.current = { at, tries: 4, where };
        again(null);
      },
    };
  }
  const shown = [];
  for (let at = from; at < to; at++) {
    const key = keyOf(at);
    shown.push(
      <div key={key} data-key={key} data-at={at} role="presentation">
        {item(at)}
      </div>,
    );
  }
  return (
    <div {...attributes} ref={root}>
      <div key="before" role="presentation" style={{ height: offsets[from]! + 'px' }} />
      {shown}
      <div key="after" role="presentation" style={{ height: total - offsets[to]! + 'px' }} />
    </div>
  );
}

/** The last offset at or before a place. */
function after(offsets: Float64Array, place: number): number {
  let [low, high] = [0, offsets.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle]! <= place) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, Math.min(low, offsets.length - 2));
}
