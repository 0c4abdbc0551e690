// A session as the page gets it, from `share::page` of the engine: each distinct text once, each step as what changed.
// This file knows the form of the data. It must not know how it is shown or where it came from.

/** Where a replacement begins in the new list, how many places go, and the blocks that come. */
type Splice = [number, number, number[]];

export interface StepData {
  /** A string: it can be more than a script can count to. */
  cycle: string;
  time?: string;
  model?: number;
  tokens: number;
  bytes: number;
  /** Input, cached, written to the cache, output, as the provider counted. */
  usage: [number | null, number | null, number | null, number | null];
  made: boolean;
  /** Nano-dollars. */
  cost?: number;
  parameters?: number;
  stop?: string;
  events: [string, number, string | null][];
  changes: Splice[];
  prefix?: Prefix;
}

export interface Prefix {
  bytes: number;
  tokens: number;
  percent?: number;
  shared: number;
  again: number;
  unread?: { readable: number; read: number; cost?: number; gap?: number; cause: string; mend: string };
  broken?: { at: number; place: string; block?: number; cause: string; mend: string; older?: string; newer?: string };
}

type BlockRow = [
  id: number,
  region: number,
  turn: number | null,
  role: number,
  kind: number | null,
  tool: number | null,
  call: string | null,
  reply: string | null,
  error: number,
  bytes: number,
  tokens: number,
  text: number,
];

export interface PageData {
  format: string;
  title: string;
  about: [string | null, string | null, string | null];
  prices: string;
  tokenizer: string;
  estimate: boolean;
  provider: string;
  reconstructed: boolean;
  no_prefixes: string | null;
  redacted: number;
  names: string[];
  ids: string[];
  turns: string[];
  texts: (string | [number, number, number, string])[];
  blocks: BlockRow[];
  steps: StepData[];
}

/** A block: what one part of a message, a tool definition or a part of the system prompt is. */
export interface Block {
  at: number;
  id: string;
  /** 0 system, 1 messages, 2 pending. */
  region: number;
  turn: number | null;
  role: string;
  kind: string;
  tool: string;
  call: string;
  /** The cycle whose reply it is. */
  reply: string | null;
  error: boolean;
  bytes: number;
  tokens: number;
  text: number;
}

export interface News {
  added: number[];
  removed: number[];
  /** The block before, the block now. */
  changed: [number, number][];
  moved: number[];
}

/** What a step is marked with in the strip. */
export interface Marks {
  compaction: boolean;
  error: boolean;
  /** The bytes broke the prompt cache, or the provider read less than it could have. */
  miss: boolean;
  /** The model is not that of the step before. */
  model: boolean;
}

const EVERY = 32;

/** A session that is read. */
export class Run {
  readonly data: PageData;
  readonly blocks: Block[];
  readonly news: News[] = [];
  readonly marks: Marks[] = [];
  /** For each block the first and the last step that has it. */
  readonly first: Int32Array;
  readonly last: Int32Array;
  private readonly lists: number[][] = [];
  private readonly whole: (string | undefined)[];
  private readonly pretty = new Map<number, string>();
  private readonly steps: Map<string, number>;

  constructor(data: PageData) {
    this.data = data;
    const name = (at: number | null) => (at === null ? '' : (data.names[at] ?? ''));
    this.blocks = data.blocks.map(([id, region, turn, role, kind, tool, call, reply, error, bytes, tokens, text], at) => ({
      at,
      id: data.ids[id] ?? '',
      region,
      turn,
      role: name(role),
      kind: name(kind),
      tool: name(tool),
      call: call ?? '',
      reply,
      error: error === 1,
      bytes,
      tokens,
      text,
    }));
    this.whole = new Array(data.texts.length);
    this.first = new Int32Array(this.blocks.length).fill(-1);
    this.last = new Int32Array(this.blocks.length).fill(-1);
    this.steps = new Map(data.steps.map((step, at) => [step.cycle, at]));
    this.walk();
  }

  /** Runs through all steps once: what came, went and changed. */
  private walk() {
    let list: number[] = [];
    let model: number | undefined;
    this.data.steps.forEach((step, index) => {
      const gone = new Map<string, number>();
      const came: number[] = [];
      list = changed(list, step.changes, (block) => gone.set(this.block(block).id, block), came);
      const found: News = { added: [], removed: [], changed: [], moved: [] };
      for (const at of came) {
        const block = this.block(at);
        if (this.first[at] === -1) this.first[at] = index;
        const old = gone.get(block.id);
        if (old === undefined) {
          found.added.push(at);
          this.last[at] = -1;
          continue;
        }
        gone.delete(block.id);
        const before = this.block(old);
        if (before.text !== block.text || before.role !== block.role || before.kind !== block.kind) found.changed.push([old, at]);
        else if (old === at || before.turn !== block.turn || before.region !== block.region) found.moved.push(at);
        if (old !== at) this.last[old] = index - 1;
        this.last[at] = -1;
      }
      for (const at of gone.values()) {
        found.removed.push(at);
        this.last[at] = index - 1;
      }
      this.news.push(found);
      if (index % EVERY === 0) this.lists.push(list);
      this.marks.push({
        compaction: step.events.some(([kind]) => kind === 'compaction'),
        error: step.events.some(([kind]) => kind === 'failed' || kind === 'tool errors'),
        miss: Boolean(step.prefix?.broken || step.prefix?.unread),
        model: step.model !== undefined && model !== undefined && step.model !== model,
      });
      model = step.model ?? model;
    });
    for (const at of list) this.last[at] = this.data.steps.length - 1;
  }

  block(at: number): Block {
    return this.blocks[at]!;
  }

  step(index: number): StepData {
    return this.data.steps[index]!;
  }

  get length(): number {
    return this.data.steps.length;
  }

  /** The step of a cycle. */
  indexOf(cycle: string): number | undefined {
    return this.steps.get(cycle);
  }

  model(index: number): string {
    const { model } = this.step(index);
    return model === undefined ? '' : (this.data.names[model] ?? '');
  }

  /** The blocks of a step, in order. */
  list(index: number): number[] {
    const mark = Math.floor(index / EVERY);
    let list = this.lists[mark] ?? [];
    for (let at = mark * EVERY + 1; at <= index; at++) list = changed(list, this.step(at).changes);
    return list;
  }

  /** The block with this id at a step, or -1. */
  find(index: number, id: string): number {
    return this.list(index).find((at) => this.block(at).id === id) ?? -1;
  }

  /** A text; those that are written as parts of another one are put together when they are first read. */
  text(index: number): string {
    const wanted: number[] = [];
    for (let at = index; this.whole[at] === undefined; ) {
      wanted.push(at);
      const written = this.data.texts[at]!;
      if (typeof written === 'string') break;
      at = written[0];
    }
    for (const at of wanted.reverse()) {
      const written = this.data.texts[at]!;
      if (typeof written === 'string') {
        this.whole[at] = written;
      } else {
        const [of, head, tail, middle] = written;
        const base = this.whole[of]!;
        this.whole[at] = base.slice(0, head) + middle + base.slice(base.length - tail);
      }
    }
    return this.whole[index]!;
  }

  /** A text as it is read: the JSON of calls and definitions on lines of its own, with line feeds in strings as such. */
  read(block: Block): string {
    const text = this.text(block.text);
    if ((block.kind !== 'call' && block.kind !== 'tool') || text.length > 200_000) return text;
    let known = this.pretty.get(block.text);
    if (known === undefined) {
      known = unfolded(text);
      this.pretty.set(block.text, known);
    }
    return known;
  }
}

/** A list of blocks after the changes of a step. */
function changed(list: number[], changes: Splice[], gone?: (block: number) => void, came?: number[]): number[] {
  if (changes.length === 0) return list;
  const next: number[] = [];
  let from = 0;
  for (const [at, removed, added] of changes) {
    while (next.length < at && from < list.length) next.push(list[from++]!);
    for (const end = from + removed; from < end; from++) gone?.(list[from]!);
    for (const block of added) {
      next.push(block);
      came?.push(block);
    }
  }
  while (from < list.length) next.push(list[from++]!);
  return next;
}

/** JSON with a member a line; a text that is no JSON stays as it is. */
export function unfolded(text: string): string {
  if (!/^\s*[{[]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let out = '';
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  tokens.forEach((token, at) => {
    const next = tokens[at + 1];
    if (token === '{' || token === '[') {
      depth++;
      out += token;
      if (next !== '}' && next !== ']') out += line();
    } else if (token === '}' || token === ']') {
      depth--;
      const before = tokens[at - 1];
      out += (before === '{' || before === '[' ? '' : line()) + token;
    } else if (token === ',') {
      out += token + line();
    } else if (token === ':') {
      out += ': ';
    } else if (token.startsWith('"') && next !== ':' && token.includes('\\')) {
      out += token.replace(/\\(["nt\\])/g, (_, letter: string) => ({ n: line() + '  ', t: '\t' })[letter] ?? letter);
    } else {
      out += token;
    }
  });
  return out;
}
