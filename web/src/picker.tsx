// A list of which one row is chosen: sessions, steps. Read by keyboard; only what is seen is in the document.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { List, type ListHandle } from './list';

interface Props {
  id: string;
  label: string;
  count: number;
  of: unknown;
  keyOf: (at: number) => string;
  height: number;
  row: (at: number) => ComponentChildren;
  /** The row that the keys move from. */
  active: number;
  chosen: number;
  move: (at: number) => void;
  pick: (at: number) => void;
}

export function Picker({ id, label, count, of, keyOf, height, row, active, chosen, move, pick }: Props) {
  const handle = useRef<ListHandle | null>(null);
  useEffect(() => handle.current?.reveal(active), [active]);
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to: Record<string, number> = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + 10, PageUp: active - 10, Home: 0, End: count - 1 };
    const next = to[event.key];
    if (event.key === 'Enter') pick(active);
    else if (next !== undefined) move(Math.max(0, Math.min(count - 1, next)));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const there = active >= 0 && active < count;
  return (
    <List
      count={count}
      of={of}
      handle={handle}
      keyOf={keyOf}
      guess={() => height}
      attributes={{ id, class: 'picker', role: 'listbox', tabIndex: 0, 'aria-label': label, 'aria-activedescendant': there ? `${id}-${active}` : undefined, onKeyDown: key as any }}
      item={(at) => (
        <div
          role="option"
          id={`${id}-${at}`}
          class={'option' + (at === chosen ? ' chosen' : '') + (at === active ? ' active' : '')}
          aria-selected={at === chosen}
          aria-posinset={at + 1}
          aria-setsize={count}
          onClick={() => pick(at)}
        >
          {row(at)}
        </div>
      )}
    />
  );
}
