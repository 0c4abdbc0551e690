// Sessions for tests: hostile in every field, and large.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folder } from './browser.mjs';

/** Would do harm as markup, as a link or as a picture. */
export const HOSTILE = "</script><script>window.harmed = 1</script><img src=http://127.0.0.1:9/x onerror='window.harmed = 2'>";
/** Turns the direction of what follows, and has no shape. */
export const TURNED = 'a\u202eb\u200bc\u0007';
const MARKDOWN = '![p](http://127.0.0.1:9/p.png) [l](javascript:window.harmed=3) <iframe src=http://127.0.0.1:9/f></iframe> {{data}} &lt;b&gt;';

/** A session of four steps, hostile in ids, roles, kinds, tools, models, parameters, titles and texts. */
export function hostile() {
  const id = (name) => `${name}"><img src=x onerror=window.harmed=4>`;
  const block = (name, offset, more) => ({ id: id(name), nodeType: 'cb', offset, role: HOSTILE, kind: 'text', ...more });
  const turn = (cycle) => ({
    id: id(`t${cycle}`),
    nodeType: 'mt',
    created_at_ns: cycle,
    children: [
      block(`u${cycle}`, 0, { content: [HOSTILE, MARKDOWN, TURNED, 'data:text/html,<script>window.harmed=5</script>'][cycle - 1], created_at_iso: `2026-03-02T10:0${cycle}:00Z` }),
      block(`i${cycle}`, 1, { kind: 'image', content: 'http://127.0.0.1:9/picture.png' }),
      block(`a${cycle}`, 2, { kind: 'call', data_call_id: HOSTILE, data_call_name: `<b onclick=window.harmed=6>${TURNED}`, data_reply: cycle, content: JSON.stringify({ url: MARKDOWN, html: HOSTILE }) }),
      block(`k${cycle}`, 3, { kind: '<i>kind</i>', content: MARKDOWN }),
    ],
  });
  let lines = '';
  for (let cycle = 1; cycle <= 4; cycle++) {
    const turns = [1, 2, 3, 4].filter((of) => of <= cycle && (cycle < 4 || of !== 1)).map(turn);
    const document = {
      cycle,
      meta: { title: HOSTILE, project: '/home/<img src=x>', agent: HOSTILE, request: { model: cycle < 3 ? HOSTILE : '<svg onload=window.harmed=7>', stop: [HOSTILE] }, attempts: cycle === 2 ? [{ error: HOSTILE }] : undefined },
      usage: { input_tokens: 1000 + cycle, cached_tokens: 900, output_tokens: 7, stop_reason: HOSTILE },
      root: {
        id: 'r',
        children: [
          { id: 's', nodeType: '^sys', children: [{ id: id('rules'), nodeType: 'cb', kind: 'text', content: `${HOSTILE} step ${cycle}` }] },
          { id: 'q', nodeType: '^seq', children: turns },
          { id: 'h', nodeType: '^ah', children: [] },
        ],
      },
    };
    lines += JSON.stringify(document) + '\n';
  }
  const file = join(folder, 'hostile.jsonl');
  writeFileSync(file, lines);
  return file;
}

/** The data of a page with `steps` steps and texts of 5 MB together, in which one text has a megabyte. */
export function large(steps = 1000) {
  const words = 'the model reads a request and answers with calls of tools whose results come back in the next one '.split(' ');
  let seed = 7;
  const next = (below) => (seed = (seed * 48271) % 2147483647) % below;
  const text = (bytes) => {
    let made = '';
    while (made.length < bytes) made += words[next(words.length - 1)] + (next(12) === 0 ? '\n' : ' ');
    return made;
  };
  const data = {
    format: 'pactql page 2', title: 'large', about: ['A large session', '/home/large', 'generated'], prices: '2026-01-01', tokenizer: 'bytes/4', estimate: true,
    provider: 'openai', reconstructed: false, no_prefixes: null, redacted: 0, names: ['user', 'assistant', 'tool', 'text', 'call', 'result', 'Bash', 'model-1', 'model-2', 'system'],
    ids: [], turns: [], texts: [], blocks: [], steps: [],
  };
  let tokens = 0;
  const add = (turn, role, kind, tool, reply, content) => {
    const at = data.blocks.length;
    const size = Math.ceil(content.length / 4);
    data.ids.push(`cb:${at}-1`);
    data.texts.push(content);
    data.blocks.push([at, turn === null ? 0 : 1, turn, role, kind, tool, tool === null ? null : `call_${turn}`, reply, Number(kind === 5 && turn % 97 === 50), content.length, size, at]);
    tokens += size;
    return at;
  };
  const bytes = Math.floor(4_000_000 / steps);
  for (let step = 0; step < steps; step++) {
    const cycle = String(step + 1);
    const from = data.blocks.length;
    data.turns.push(`mt:${step}`);
    const came = step === 0 ? [add(null, 9, 3, null, null, text(2000))] : [];
    came.push(add(step, step % 4 === 0 ? 0 : 2, step % 4 === 0 ? 3 : 5, step % 4 === 0 ? null : 6, null, step === 500 ? text(1_000_000) + ' needle' : text(bytes * 0.75)));
    came.push(add(step, 1, step % 4 === 3 ? 3 : 4, step % 4 === 3 ? null : 6, cycle, step % 4 === 3 ? text(bytes * 0.25) : JSON.stringify({ command: text(bytes * 0.25) })));
    const broken = step > 0 && step % 211 === 0;
    data.steps.push({
      cycle, time: new Date(Date.UTC(2026, 2, 1, 9) + step * 40_000).toISOString(), model: step < 700 ? 7 : 8, tokens, bytes: tokens * 4, usage: [tokens, broken ? 0 : Math.round(tokens * 0.97), 0, 50 + next(400)], made: true,
      cost: tokens * 30, events: step % 97 === 50 && step % 4 !== 0 ? [['tool errors', 1, null]] : [['call', 1, 'Bash']], changes: [[from, 0, came]],
      prefix: { bytes: tokens * 4, tokens, percent: step === 0 ? undefined : broken ? 3 : 100, shared: tokens * 4, missed: 0, ...(broken ? { broken: { at: 100, place: 'system', cause: 'a date or time in a text', mend: 'put it last' } } : {}) },
    });
  }
  return data;
}
