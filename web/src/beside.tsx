// Another run beside this one: where they part first, in which words, and the two steps next to each other.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { write } from './address';
import { Words } from './blocks';
import { Run } from './data';
import { parting, Refused, session, type SessionRow } from './source';
import { counted, visible } from './words';
import { NewView, type ViewProps } from './views';
import { blockName, eventText } from './words-of';

interface Props extends ViewProps {
  name: string;
  rows: SessionRow[];
  other: string | null;
  choose: (other: string | null) => void;
}

export function BesideView(props: Props) {
  const { run, index, look, go, name, rows, other, choose } = props;
  const [found, setFound] = useState<{ body: any; run: Run; of: string } | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    setError('');
    setFound(null);
    if (other === null) return;
    let current = true;
    Promise.all([parting(name, other), session(other)]).then(
      ([body, data]) => current && setFound({ body, run: new Run(data), of: other }),
      (error) => current && setError(error instanceof Refused ? error.message + (error.help ? `: ${error.help}` : '') : String(error)),
    );
    return () => {
      current = false;
    };
  }, [name, other, run]);
  const others = rows.filter((row) => row.name !== name);
  return (
    <>
      <p class="choice">
        <label for="other">Beside </label>
        <select id="other" value={other ?? ''} onChange={(event) => choose(event.currentTarget.value || null)}>
          <option value="">choose another run</option>
          {other !== null && !others.some((row) => row.name === other) && <option value={other}>{visible(other)}</option>}
          {others.slice(0, 500).map((row) => (
            <option key={row.name} value={row.name}>
              {visible(row.title ?? row.name)} ({visible(row.name)})
            </option>
          ))}
        </select>
      </p>
      {error && (
        <p class="failure" role="alert">
          {visible(error)}
        </p>
      )}
      {other !== null && !found && !error && <p class="quiet">Comparing{'\u2026'}</p>}
      {found && <Parting run={run} other={found.run} of={found.of} body={found.body} go={go} index={index} look={look} />}
    </>
  );
}

function Parting({ run, other, of, body, go, index, look }: ViewProps & { other: Run; of: string; body: any }) {
  const { parted } = body;
  const meeting = body.meet;
  const cycle = (at: unknown) => (at === undefined ? undefined : String(at));
  const here = parted ? run.indexOf(cycle(parted.cycle_a) ?? '') : undefined;
  const there = parted ? other.indexOf(cycle(parted.cycle_b) ?? '') : undefined;
  const what: Record<string, string> = { request: 'what was sent differs', answer: 'what was sent is equal, the answers differ', end: 'one of them ends' };
  const plain = useMemo(() => ({ ...look, matched: new Set<string>(), chosen: null, reveal: 0, hit: null }), [look]);
  const beside = there ?? other.length - 1;
  const addressed = {
    ...plain,
    href: (block: string) => write({ session: of, step: other.length > 0 ? other.step(beside).cycle : null, tab: 'new', block, search: '', selector: '', other: null }),
  };
  const end = (side: any) => `${counted(side.steps, 'step')}, ended with ${side.events.map((event: any) => eventsOf(event)).join(', ') || 'nothing'}${side.stop_reason ? ` (${visible(String(side.stop_reason))})` : ''}`;
  return (
    <>
      <p class="verdict" role="status">
        {parted ? (
          <>
            {body.equal === 0 ? 'No step is equal' : `The first ${counted(body.equal, 'step')} ${body.equal === 1 ? 'is' : 'are'} equal`}; then {what[parted.at] ?? 'they part'}
            {here !== undefined && (
              <>
                {': '}
                <button type="button" class="link" onClick={() => go(here, parted.block_a ?? null)}>
                  step {String(parted.cycle_a)} here
                </button>
              </>
            )}
            {there !== undefined && `, step ${String(parted.cycle_b)} there`}.
          </>
        ) : (
          `All ${counted(body.equal, 'step')} are equal.`
        )}
        {meeting && ` They meet again at step ${meeting.cycle_a} here, ${meeting.cycle_b} there, for ${counted(meeting.steps, 'step')}.`}
      </p>
      <p class="quiet">
        Here: {end(body.a)}. There: {end(body.b)}.
      </p>
      {parted?.difference && <Difference run={run} other={other} here={here} there={there} difference={parted.difference} />}
      <div class="beside">
        {(
          [
            ['Here', run, here ?? index, plain],
            ['There', other, beside, addressed],
          ] as const
        ).map(([side, of, at, look]) => (
          <section key={side} aria-label={side}>
            <h3>
              {side}: step {of.length > 0 ? of.step(at).cycle : 'none'}
            </h3>
            {of.length > 0 && <NewView run={of} index={at} look={look} go={go} />}
          </section>
        ))}
      </div>
    </>
  );
}

function eventsOf(event: any): string {
  if (event.event === 'calls') return event.tools.map(([tool, number]: [string, number]) => 'calls ' + eventText(['call', number, tool])).join(', ');
  return visible(String(event.event).replace('_', ' '));
}

function Difference({ run, other, here, there, difference }: { run: Run; other: Run; here?: number; there?: number; difference: any }) {
  const text = (of: Run, at: number | undefined, id: string) => {
    const block = at === undefined ? -1 : of.find(at, id);
    return block < 0 ? null : of.block(block);
  };
  const alone = (side: string, of: Run, at: number | undefined, list: any[]) =>
    list.slice(0, 20).map((lone) => {
      const id = String(lone.id ?? lone);
      const block = text(of, at, id);
      return (
        <li key={side + id}>
          only {side}: {block ? blockName(block) : visible(id)}
        </li>
      );
    });
  return (
    <div class="difference">
      {(difference.changed ?? []).slice(0, 20).map((pair: any) => {
        const [a, b] = [text(run, here, pair.a), text(other, there, pair.b)];
        return (
          <section key={pair.a} aria-label="What differs">
            <h3 title={visible(`${pair.a}, ${pair.b}, paired by ${pair.by}`)}>{b ? blockName(b) : visible(String(pair.b))}</h3>
            {a && b && <Words older={run.read(a)} newer={other.read(b)} />}
          </section>
        );
      })}
      <ul class="rows">
        {alone('here', run, here, difference.only_a ?? [])}
        {alone('there', other, there, difference.only_b ?? [])}
        {(difference.parameters ?? []).map((parameter: any, at: number) => (
          <li key={at}>
            parameter <code>{visible(JSON.stringify(parameter))}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}
