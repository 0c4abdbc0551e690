// What steps and blocks are called on the page: words that a user of models knows. PACT's names are in tooltips.

import type { Block, Run } from './data';
import { amount, counted, visible } from './words';

export const REGIONS = ['system', 'messages', 'pending'] as const;
export const REGION_NAMES = [
  '^sys: the system prompt and the tool definitions',
  '^seq: the turns that were committed',
  '^ah: the active head, which is in no turn yet',
] as const;

export const stepName = (run: Run, index: number) => 'step ' + run.step(index).cycle;

/** A block in a few words: `assistant calls Bash`. */
export function blockName(block: Block): string {
  const tool = visible(block.tool);
  switch (block.kind) {
    case 'tool':
      return 'tool ' + (tool || visible(block.id));
    case 'call':
      return visible(block.role) + ' calls ' + (tool || 'a tool');
    case 'result':
      return (block.error ? 'error of ' : 'result of ') + (tool || 'a tool');
    case 'thinking':
      return visible(block.role) + ' thinks';
    case 'text':
    case '':
      return visible(block.role) || 'text';
    default:
      return visible(block.role) + ' ' + visible(block.kind);
  }
}

/** What the engine calls it. */
export function blockTitle(run: Run, block: Block): string {
  const parts = ['block ' + block.id];
  if (block.turn !== null) parts.push('turn ' + (run.data.turns[block.turn] ?? ''));
  parts.push('region ' + ['^sys', '^seq', '^ah'][block.region]);
  if (block.kind) parts.push('kind ' + block.kind);
  if (block.call) parts.push('call ' + block.call);
  return visible(parts.join(', '));
}

export function eventText([kind, number, about]: [string, number, string | null]): string {
  const of = about ? ': ' + visible(about) : '';
  if (kind === 'call') return visible(about ?? '') + (number > 1 ? ' \u00d7' + number : '');
  if (kind === 'failed') return counted(number, 'failed call') + of;
  if (kind === 'tool errors') return counted(number, 'tool error');
  return kind;
}

/** What happened in a step, on one line. */
export function happened(run: Run, index: number): string {
  const events = run.step(index).events.map(eventText);
  if (events.length > 0) return events.join(', ');
  const { added, removed, changed } = run.news[index]!;
  if (added.length + removed.length + changed.length === 0) return 'nothing changed';
  const parts = [added.length && `${amount(added.length)} new`, removed.length && `${amount(removed.length)} gone`, changed.length && `${amount(changed.length)} changed`];
  return parts.filter(Boolean).join(', ');
}

/** Tokens that were sent: as the provider counted, or else as they were counted here. */
export const sent = (run: Run, index: number) => run.step(index).usage[0] ?? run.step(index).tokens;

/** A step in a sentence, for the strip's value and its hint. */
export function stepSentence(run: Run, index: number): string {
  const step = run.step(index);
  const [input, cached, , output] = step.usage;
  const parts = [`${stepName(run, index)} of ${run.step(run.length - 1).cycle}`];
  parts.push(input === null ? `${amount(step.tokens)} tokens` : `${amount(input)} tokens in`);
  if (cached) parts.push(`${amount(cached)} from the prompt cache`);
  if (output !== null) parts.push(`${amount(output)} out`);
  parts.push(happened(run, index));
  const marks = run.marks[index]!;
  if (marks.miss) parts.push('cache miss');
  if (marks.model) parts.push('model ' + visible(run.model(index)));
  return parts.join(', ');
}
