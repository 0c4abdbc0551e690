// The box for selectors: completion from the session's own fields, errors under the text as it is typed, the plan.
// The engine answers; this file must not know the language.

import { useEffect, useRef, useState } from 'preact/hooks';
import { explain, fields, Refused } from './source';
import { amount, counted, visible } from './words';

interface Props {
  session: string;
  value: string;
  /** What was found, in words. */
  said: string;
  run: (selector: string) => void;
  box: { current: HTMLInputElement | null };
  leave: () => void;
}

interface Suggestion {
  insert: string;
  about: string;
}

/** What may be written at the caret, and from where it replaces. */
function suggestions(known: any, text: string, caret: number): { from: number; list: Suggestion[] } {
  const before = text.slice(0, caret);
  const value = /\[\s*([\w-]+)\s*(?:[~^$*!]?=)\s*('[^']*|"[^"]*|[^\]'"\s]*)$/.exec(before);
  const name = /\[\s*([\w-]*)$/.exec(before);
  const word = /[.^@]?[\w-]*$/.exec(before)!;
  const typed = (value ? value[2]! : name ? name[1]! : word[0]).replace(/^['"]/, '').toLowerCase();
  const all: Suggestion[] = [];
  const list: any[] = known?.fields ?? [];
  if (value) {
    const field = list.find((field) => field.name === value[1]);
    for (const each of field?.values ?? []) all.push({ insert: `'${String(each.value).replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`, about: counted(each.nodes, 'node') });
  } else if (name) {
    for (const field of list) all.push({ insert: String(field.name), about: counted(field.nodes, 'node') });
    for (const header of known?.headers ?? []) all.push({ insert: String(header), about: 'of every node' });
  } else {
    for (const [insert, about] of TYPES) all.push({ insert, about });
    const kinds = list.find((field) => field.name === 'kind')?.values ?? [];
    for (const kind of kinds) all.push({ insert: `.cb[kind='${String(kind.value)}']`, about: counted(kind.nodes, 'node') });
    for (const tool of known?.tools ?? []) all.push({ insert: `.cb[data_call_name='${String(tool.value)}']`, about: `calls, ${amount(tool.nodes)}` });
  }
  const bare = (insert: string) => insert.replace(/^['"]/, '').toLowerCase();
  const matching = all.filter(({ insert }) => bare(insert).includes(typed) && bare(insert) !== typed);
  matching.sort((a, b) => Number(!bare(a.insert).startsWith(typed)) - Number(!bare(b.insert).startsWith(typed)));
  const from = caret - (value ? value[2]!.length : name ? name[1]!.length : word[0].length);
  return { from, list: matching.slice(0, 12) };
}

const TYPES: [string, string][] = [
  ['.cb', 'blocks: parts of messages, tool definitions'],
  ['.mt', 'turns'],
  ['.mc', 'messages'],
  ['^sys', 'the system prompt and tools'],
  ['^seq', 'the messages'],
  ['^ah', 'what is pending'],
  ['@t0', 'the newest step'],
  ['@c', 'a step by its number'],
];

export function SelectorBox({ session, value, said, run, box, leave }: Props) {
  const [text, setText] = useState(value);
  const [caret, setCaret] = useState(0);
  const [open, setOpen] = useState(false);
  const [focused, setFocused] = useState(false);
  const [active, setActive] = useState(-1);
  const [known, setKnown] = useState<any>(null);
  const [error, setError] = useState<{ error: Refused; of: string } | null>(null);
  const [plan, setPlan] = useState<any>(null);
  const asked = useRef(0);

  useEffect(() => setText(value), [value]);
  useEffect(() => {
    setKnown(null);
    setPlan(null);
  }, [session]);
  useEffect(() => {
    const number = ++asked.current;
    if (text.trim() === '') {
      setError(null);
      setPlan(null);
      return;
    }
    const timer = setTimeout(() => {
      explain(session, text).then(
        (found) => {
          if (number !== asked.current) return;
          setError(null);
          setPlan((shown: any) => (shown ? found : shown));
        },
        (error) => number === asked.current && setError({ error: error instanceof Refused ? error : new Refused('E_INTERNAL', String(error)), of: text }),
      );
    }, 120);
    return () => clearTimeout(timer);
  }, [text, session]);

  const focus = () => {
    setFocused(true);
    if (known === null) fields(session).then(setKnown, () => setKnown({}));
  };
  const { from, list } = open ? suggestions(known, text, caret) : { from: 0, list: [] };
  const take = (at: number) => {
    const found = list[at];
    if (!found) return;
    const next = text.slice(0, from) + found.insert + text.slice(caret);
    const place = from + found.insert.length;
    // At once: a key that follows must find its place.
    if (box.current) {
      box.current.value = next;
      box.current.setSelectionRange(place, place);
    }
    setText(next);
    setCaret(place);
    setActive(-1);
    setOpen(false);
  };
  const submit = () => {
    setOpen(false);
    run(text.trim());
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (!open) setOpen(true);
      else if (list.length) setActive((active + (event.key === 'ArrowDown' ? 1 : active < 0 ? 0 : -1) + list.length) % list.length);
    } else if (event.key === 'Enter') {
      if (open && active >= 0) take(active);
      else submit();
    } else if (event.key === 'Tab' && open && active >= 0) {
      take(active);
    } else if (event.key === 'Escape') {
      if (open && list.length) setOpen(false);
      else leave();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const explained = () => (plan ? setPlan(null) : text.trim() && explain(session, text).then(setPlan, () => undefined));
  const shown = error && error.of === text ? error : null;
  return (
    <div class="selector">
      <div class="box">
        <input
          ref={box}
          id="selector"
          type="text"
          role="combobox"
          aria-label="Selector"
          aria-expanded={open && list.length > 0}
          aria-controls="suggestions"
          aria-autocomplete="list"
          aria-activedescendant={open && active >= 0 ? 'suggestion-' + active : undefined}
          aria-invalid={shown !== null}
          aria-describedby={shown ? 'selector-error' : undefined}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder="Select, such as .cb[kind='result']  (s)"
          value={text}
          onFocus={focus}
          onBlur={() => {
            setOpen(false);
            setFocused(false);
          }}
          onInput={(event) => {
            const { value, selectionStart } = event.currentTarget;
            setText(value);
            setCaret(selectionStart ?? value.length);
            setOpen(true);
            setActive(-1);
          }}
          onKeyDown={key}
        />
        <button type="button" onClick={explained} aria-pressed={plan !== null} disabled={text.trim() === '' || shown !== null}>
          Plan
        </button>
        <div class={focused ? 'popup' : 'popup still'} onPointerDown={(event) => focused && event.preventDefault()}>
          {shown && <Failure error={shown.error} of={shown.of} use={setText} />}
          <ul id="suggestions" role="listbox" aria-label="Suggestions" hidden={!open || list.length === 0}>
            {list.map(({ insert, about }, at) => (
              <li
                key={insert}
                role="option"
                id={'suggestion-' + at}
                aria-selected={at === active}
                class={at === active ? 'active' : undefined}
                onPointerDown={(event) => {
                  event.preventDefault();
                  take(at);
                }}
              >
                <code>{visible(insert)}</code> <span class="quiet">{visible(about)}</span>
              </li>
            ))}
          </ul>
        </div>
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {plan && !shown && <Plan plan={plan} />}
    </div>
  );
}

/** The text with the place that is wrong underlined, and what would mend it. */
function Failure({ error, of, use }: { error: Refused; of: string; use: (text: string) => void }) {
  const bytes = new TextEncoder().encode(of);
  const cut = (from: number, to: number) => visible(new TextDecoder().decode(bytes.slice(from, to)));
  const first = error.spans[0];
  return (
    <div id="selector-error" class="failure" role="alert">
      <p class="message">{visible(error.message)}</p>
      {first && (
        <p class="place">
          <code>
            {cut(0, first.start)}
            <span class="wrong" title={visible(first.label ?? '')}>
              {cut(first.start, first.end) || '\u2038'}
            </span>
            {cut(first.end, bytes.length)}
          </code>{' '}
          {first.label && <span class="label">{visible(first.label)}</span>}
        </p>
      )}
      {error.help && <p class="help">{visible(error.help)}</p>}
      {error.correction && (
        <button type="button" onClick={() => use(error.correction)}>
          Use <code>{visible(error.correction)}</code>
        </button>
      )}
    </div>
  );
}

function Plan({ plan }: { plan: any }) {
  const strategy = plan.strategy ?? {};
  const rows: [string, string][] = [['normalized', String(plan.normalized ?? '')]];
  if (strategy.name) rows.push(['strategy', `${strategy.name}: ${strategy.summary ?? ''}`]);
  for (const other of strategy.cheaper ?? []) rows.push(['not ' + other.name, String(other.reason)]);
  (plan.values ?? []).forEach((value: unknown, at: number) => rows.push(['?' + (at + 1), String(value)]));
  return (
    <div class="plan" role="region" aria-label="Plan">
      <table class="facts-table">
        <tbody>
          {rows.map(([name, text]) => (
            <tr key={name}>
              <th scope="row">{visible(name)}</th>
              <td>{visible(text)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">plan</th>
            <td>
              <ol class="operators">
                {(plan.plan ?? []).map((step: any, at: number) => (
                  <li key={at}>
                    <code>{visible(String(step.operator))}</code>
                  </li>
                ))}
              </ol>
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
