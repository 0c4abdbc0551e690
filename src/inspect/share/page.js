'use strict';
// Shows a session: steps, and of the chosen step its tree, what changed, its tokens and its prefix.
// The data is JSON in the document. Texts become text nodes and nothing else. Nothing is loaded or sent.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const [ID, REGION, TURN, ROLE, KIND, TOOL, CALL, REPLY, ERROR, BYTES, TOKENS, TEXT] = Array(12).keys();
  const REGIONS = ['^sys', '^seq', '^ah'];
  const LONG = 20000;
  const HITS = 300;
  const { blocks, steps, names } = data;

  // --- Texts ---

  const whole = new Array(data.texts.length);

  /** A text; those that are written as parts of another one are put together when they are first read. */
  function textAt(index) {
    const wanted = [];
    for (let at = index; whole[at] === undefined; at = data.texts[at][0]) {
      wanted.push(at);
      if (typeof data.texts[at] === 'string') break;
    }
    for (const at of wanted.reverse()) {
      const written = data.texts[at];
      if (typeof written === 'string') {
        whole[at] = written;
      } else {
        const [of, head, tail, middle] = written;
        const base = whole[of];
        whole[at] = base.slice(0, head) + middle + base.slice(base.length - tail);
      }
    }
    return whole[index];
  }

  // What has no shape, or turns the direction of what follows.
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

  /** A text in which every character can be seen. */
  function visible(text) {
    return text.replace(HIDDEN, (letter) => {
      const code = letter.codePointAt(0);
      if (code < 32) return String.fromCharCode(0x2400 + code);
      return '\u27e8U+' + code.toString(16).toUpperCase().padStart(4, '0') + '\u27e9';
    });
  }

  /** The start of a text on one line. */
  const preview = (text) => visible(text.slice(0, 160).replace(/\s+/g, ' '));

  const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
  const counted = (number, thing) => count(number) + ' ' + thing + (number === 1 ? '' : 's');
  const percent = (part, of) => (of === 0 ? 0 : Math.round((part * 1000) / of) / 10) + ' %';
  const name = (index) => (index === null || index === undefined ? '' : visible(names[index]));

  // --- Elements ---

  /** An element with attributes and children; strings become text nodes. */
  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === false || value === null || value === undefined) continue;
      if (key === 'on') for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
      else made.setAttribute(key, value === true ? '' : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
    return made;
  }

  const span = (style, text) => el('span', { class: style }, text);

  // --- Steps ---

  /** What a step has that the one before has not, and the other way round. Runs through all steps once. */
  const news = [];
  const firstOf = new Array(blocks.length).fill(-1);
  const lastOf = new Array(blocks.length).fill(-1);
  const marks = [];
  const EVERY = 32;
  (() => {
    let list = [];
    steps.forEach((step, index) => {
      const gone = new Map();
      const came = [];
      list = changed(list, step.changes, (block) => gone.set(blocks[block][ID], block), came);
      const found = { added: [], removed: [], changed: [], moved: [] };
      for (const block of came) {
        if (firstOf[block] < 0) firstOf[block] = index;
        const old = gone.get(blocks[block][ID]);
        if (old === undefined) {
          found.added.push(block);
          continue;
        }
        gone.delete(blocks[block][ID]);
        const differs = (field) => blocks[old][field] !== blocks[block][field];
        if (differs(TEXT) || differs(ROLE) || differs(KIND)) found.changed.push([old, block]);
        else if (old === block || differs(TURN) || differs(REGION)) found.moved.push(block);
        if (old !== block) lastOf[old] = index - 1;
        lastOf[block] = -1;
      }
      for (const block of gone.values()) {
        found.removed.push(block);
        lastOf[block] = index - 1;
      }
      news.push(found);
      if (index % EVERY === 0) marks.push(list);
    });
    for (const block of list) lastOf[block] = steps.length - 1;
  })();

  /** A list of blocks after the changes of a step. */
  function changed(list, changes, gone, came) {
    if (changes.length === 0) return list;
    const next = [];
    let from = 0;
    for (const [at, removed, added] of changes) {
      while (next.length < at) next.push(list[from++]);
      for (let end = from + removed; from < end; from++) if (gone) gone(list[from]);
      for (const block of added) {
        next.push(block);
        if (came) came.push(block);
      }
    }
    while (from < list.length) next.push(list[from++]);
    return next;
  }

  /** The blocks of a step. */
  function listAt(index) {
    const mark = Math.floor(index / EVERY);
    let list = marks[mark];
    for (let at = mark * EVERY + 1; at <= index; at++) list = changed(list, steps[at].changes);
    return list;
  }

  const label = (step) => '@c' + step.cycle;
  const isReply = (block, step) => block[REPLY] === step.cycle;

  function eventText([kind, number, about]) {
    const of = about ? ': ' + visible(about) : '';
    if (kind === 'call') return visible(about) + (number > 1 ? ' \u00d7' + number : '');
    if (kind === 'failed') return counted(number, 'failed call') + of;
    if (kind === 'tool errors') return counted(number, 'tool error');
    return kind;
  }

  function changeText(found) {
    const parts = [];
    for (const [style, sign] of [['added', '+'], ['removed', '\u2212'], ['changed', '~'], ['moved', '\u2192']]) {
      if (found[style].length > 0) parts.push(span(style, sign + found[style].length + ' ' + style + ' '));
    }
    return parts.length ? parts : [span('quiet', 'nothing changed')];
  }

  // --- A list or tree that is read by keyboard ---

  /**
   * Rows of `{level, sign, style, head, size, preview, children, body, act, open, key}` as a tree. Up and
   * down move, right opens, left closes, Enter opens or acts, Escape closes what is open.
   */
  class Outline {
    constructor(title, entries) {
      this.root = el('div', { role: 'tree', 'aria-label': title, class: 'outline' });
      this.root.addEventListener('keydown', (event) => this.key(event));
      this.root.addEventListener('click', (event) => {
        const row = event.target.closest('.head');
        if (!row) return;
        this.focus(row.parentElement);
        this.toggle(row.parentElement);
      });
      this.entries = new Map();
      entries.forEach((entry, at) => this.add(entry, 1, null, at, entries.length));
      const first = this.root.firstElementChild;
      if (first) first.tabIndex = 0;
      else this.root.append(el('p', { class: 'quiet' }, 'Nothing.'));
    }

    add(entry, level, after, at, of) {
      const group = 'children' in entry;
      const opens = group || entry.body;
      const row = el('div', {
        class: 'item' + (group ? ' group' : ''),
        role: 'treeitem',
        tabindex: -1,
        'aria-level': level,
        'aria-posinset': at + 1,
        'aria-setsize': of,
        'aria-expanded': opens ? 'false' : null,
      });
      const head = el('div', { class: 'head' },
        el('span', { class: 'twist', 'aria-hidden': 'true' }, opens ? '\u25b8' : ''),
        span('sign ' + (entry.style || ''), entry.sign || ''),
        span('what ' + (entry.style || ''), entry.head),
        span('preview', entry.preview || ''),
        span('size', entry.size || ''));
      row.append(head);
      this.entries.set(row, { entry, level, rows: [] });
      if (after) after.after(row);
      else this.root.append(row);
      let last = row;
      if (entry.open && opens) last = this.expand(row);
      return last;
    }

    expand(row) {
      const known = this.entries.get(row);
      row.setAttribute('aria-expanded', 'true');
      row.querySelector('.twist').textContent = '\u25be';
      if (known.entry.body && row.children.length === 1) {
        row.append(el('div', { class: 'body' }, ...[known.entry.body()].flat()));
      }
      let last = row;
      const children = known.entry.children || [];
      children.forEach((child, at) => {
        const before = last;
        last = this.add(child, known.level + 1, before, at, children.length);
        known.rows.push(before.nextElementSibling);
      });
      return last;
    }

    collapse(row) {
      const known = this.entries.get(row);
      row.setAttribute('aria-expanded', 'false');
      row.querySelector('.twist').textContent = '\u25b8';
      if (row.children.length > 1) row.lastElementChild.remove();
      for (const child of known.rows) {
        if (child.getAttribute('aria-expanded') === 'true') this.collapse(child);
        this.entries.delete(child);
        child.remove();
      }
      known.rows = [];
    }

    toggle(row) {
      const { entry } = this.entries.get(row);
      if (entry.act) entry.act();
      else if (row.getAttribute('aria-expanded') === 'true') this.collapse(row);
      else if (row.hasAttribute('aria-expanded')) this.expand(row);
    }

    focus(row) {
      if (!row) return;
      const before = this.root.querySelector('[tabindex="0"]');
      if (before) before.tabIndex = -1;
      row.tabIndex = 0;
      row.focus();
    }

    /** The row of an entry with this key; its parents are opened. */
    find(key) {
      for (const [row, { entry }] of this.entries) if (entry.key === key) return row;
      for (const [row, { entry }] of [...this.entries]) {
        const has = (of) => (of.children || []).some((child) => child.key === key || has(child));
        if (has(entry) && row.getAttribute('aria-expanded') !== 'true') {
          this.expand(row);
          return this.find(key);
        }
      }
      return null;
    }

    key(event) {
      const row = event.target.closest('.item');
      if (row && event.target !== row && event.key === 'Escape') {
        event.preventDefault();
        event.stopPropagation();
        this.collapse(row);
        this.focus(row);
        return;
      }
      if (!row || event.target !== row || event.altKey || event.ctrlKey || event.metaKey) return;
      const rows = [...this.root.children];
      const at = rows.indexOf(row);
      const open = row.getAttribute('aria-expanded');
      const level = Number(row.getAttribute('aria-level'));
      const parent = () => rows.slice(0, at).reverse().find((other) => Number(other.getAttribute('aria-level')) < level);
      const acts = {
        ArrowDown: () => this.focus(rows[at + 1]),
        ArrowUp: () => this.focus(rows[at - 1]),
        Home: () => this.focus(rows[0]),
        End: () => this.focus(rows[rows.length - 1]),
        ArrowRight: () => (open === 'false' ? this.expand(row) : this.entries.get(row).rows.length && this.focus(rows[at + 1])),
        ArrowLeft: () => (open === 'true' ? this.collapse(row) : this.focus(parent())),
        Enter: () => this.toggle(row),
        ' ': () => this.toggle(row),
        Escape: () => open === 'true' && !('children' in this.entries.get(row).entry) && this.collapse(row),
      };
      const act = acts[event.key];
      if (!act) return;
      if (act() !== false || event.key !== 'Escape') {
        event.preventDefault();
        event.stopPropagation();
      }
    }
  }

  // --- Texts that changed ---

  /** The fewest words to remove and add, as `[sign, text]`; texts that differ in too much differ as a whole. */
  function words(older, newer) {
    const cut = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
    const [a, b] = [cut(older), cut(newer)];
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
    const runs = [['=', a.slice(0, head).join('')]];
    runs.push(...shortest(a.slice(head, a.length - tail), b.slice(head, b.length - tail)));
    runs.push(['=', a.slice(a.length - tail).join('')]);
    const joined = [];
    for (const [sign, text] of runs) {
      if (text === '') continue;
      const last = joined[joined.length - 1];
      if (last && last[0] === sign) last[1] += text;
      else joined.push([sign, text]);
    }
    return joined;
  }

  /** Myers' shortest edit script, up to 400 edits. */
  function shortest(a, b) {
    const most = Math.min(a.length + b.length, 400);
    const ends = new Map([[1, 0]]);
    const trace = [];
    for (let edits = 0; edits <= most; edits++) {
      trace.push(new Map(ends));
      for (let k = -edits; k <= edits; k += 2) {
        const down = k === -edits || (k !== edits && ends.get(k - 1) < ends.get(k + 1));
        let x = down ? ends.get(k + 1) : ends.get(k - 1) + 1;
        while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
        ends.set(k, x);
        if (x >= a.length && x - k >= b.length) return script(a, b, trace);
      }
    }
    return [['-', a.join('')], ['+', b.join('')]];
  }

  function script(a, b, trace) {
    const runs = [];
    let [x, y] = [a.length, b.length];
    for (let edits = trace.length - 1; edits >= 0; edits--) {
      const ends = trace[edits];
      const k = x - y;
      const down = k === -edits || (k !== edits && ends.get(k - 1) < ends.get(k + 1));
      const before = edits === 0 ? 0 : down ? ends.get(k + 1) : ends.get(k - 1);
      const start = edits === 0 ? 0 : before - (down ? k + 1 : k - 1);
      while (x > before && y > start) {
        runs.push(['=', a[--x]]);
        y--;
      }
      if (edits > 0) runs.push(down ? ['+', b[--y]] : ['-', a[--x]]);
    }
    return runs.reverse();
  }

  /** Changed words, with at most three lines around each change. */
  function wordsChanged(older, newer) {
    const out = el('pre', { class: 'text', tabindex: 0, dir: 'auto' });
    const runs = words(older, newer);
    runs.forEach(([sign, text], at) => {
      if (sign !== '=') {
        out.append(el(sign === '+' ? 'ins' : 'del', {}, visible(text)));
        return;
      }
      const lines = text.split('\n');
      const start = at === 0 ? 0 : 4;
      // A line feed at the end begins no line.
      const end = at < runs.length - 1 ? 4 : lines[lines.length - 1] === '' ? 1 : 0;
      const left = lines.length - start - end;
      if (left < 2) {
        out.append(visible(text));
        return;
      }
      if (start) out.append(visible(lines.slice(0, start).join('\n') + '\n'));
      out.append(span('quiet', '\u22ef ' + counted(left, 'line') + ' as before\n'));
      if (end) out.append(visible(lines.slice(-end).join('\n')));
    });
    return out;
  }

  /** A text to read: long ones begin with a part. */
  function textBody(block) {
    const text = textAt(block[TEXT]);
    const facts = [visible(data.ids[block[ID]])];
    if (block[CALL]) facts.push('call ' + visible(block[CALL]));
    facts.push(counted(block[BYTES], 'byte'));
    const pre = el('pre', { class: 'text', tabindex: 0, dir: 'auto' });
    const parts = [el('p', { class: 'quiet mono' }, facts.join(' \u00b7 ')), pre];
    pre.textContent = visible(text.slice(0, LONG));
    if (text.length > LONG) {
      const more = el('button', { type: 'button' }, 'Show all of ' + counted(text.length, 'character'));
      more.addEventListener('click', () => {
        pre.textContent = visible(text);
        more.remove();
        pre.focus();
      });
      parts.push(more);
    }
    return parts;
  }

  // --- Panels ---

  function blockEntry(index, step, style, old) {
    const block = blocks[index];
    const sign = { added: '+', removed: '\u2212', changed: '~', moved: '\u2192' }[style] || '';
    const tool = block[TOOL] === null ? '' : ' ' + name(block[TOOL]);
    const flags = (isReply(block, step) ? ' (reply)' : '') + (block[ERROR] ? ' (error)' : '');
    return {
      sign,
      style,
      key: 'block ' + index,
      head: (style ? style + ': ' : '') + name(block[ROLE]) + ' ' + (name(block[KIND]) || 'block') + tool + flags,
      preview: preview(textAt(block[TEXT])),
      size: counted(block[TOKENS], 'token'),
      body: () => (old === undefined ? textBody(block) : changedBody(blocks[old], block)),
    };
  }

  function changedBody(old, block) {
    const facts = [];
    if (old[ROLE] !== block[ROLE]) facts.push('role ' + name(old[ROLE]) + ' \u2192 ' + name(block[ROLE]));
    if (old[KIND] !== block[KIND]) facts.push('kind ' + name(old[KIND]) + ' \u2192 ' + name(block[KIND]));
    facts.push(count(old[BYTES]) + ' \u2192 ' + counted(block[BYTES], 'byte'));
    const parts = [el('p', { class: 'quiet mono' }, visible(data.ids[block[ID]]) + ' \u00b7 ' + facts.join(' \u00b7 '))];
    if (old[TEXT] !== block[TEXT]) parts.push(wordsChanged(textAt(old[TEXT]), textAt(block[TEXT])));
    return parts;
  }

  function treePanel(index) {
    const step = steps[index];
    const list = listAt(index);
    const found = news[index];
    const style = new Map();
    if (index > 0) {
      for (const block of found.added) style.set(block, ['added']);
      for (const [old, block] of found.changed) style.set(block, ['changed', old]);
      for (const block of found.moved) style.set(block, ['moved']);
    }
    const few = list.length <= 60;
    const regions = [];
    const sum = (of) => of.reduce((tokens, at) => tokens + blocks[at][TOKENS], 0);
    let [region, turn] = [null, null];
    for (const at of list) {
      const block = blocks[at];
      if (!region || region.of !== block[REGION]) {
        region = { of: block[REGION], key: 'region ' + block[REGION], head: REGIONS[block[REGION]], children: [], all: [], open: true };
        regions.push(region);
        turn = null;
      }
      region.all.push(at);
      const entry = () => blockEntry(at, step, ...(style.get(at) || []));
      if (block[TURN] === null) {
        region.children.push(entry());
        continue;
      }
      if (!turn || turn.of !== block[TURN]) {
        turn = { of: block[TURN], key: 'turn ' + block[TURN], made: [], all: [], open: few };
        region.children.push(turn);
      }
      turn.all.push(at);
      turn.made.push(entry);
      if (style.has(at)) turn.open = true;
    }
    for (const part of regions) {
      const turns = part.children.filter((child) => child.made);
      turns.forEach((each, at) => {
        each.head = 'turn ' + visible(data.turns[each.of]) + ', depth ' + (turns.length - at);
        each.preview = preview(textAt(blocks[each.all[0]][TEXT]));
        each.size = counted(sum(each.all), 'token');
        // Made when they are opened: most never are.
        let made = null;
        Object.defineProperty(each, 'children', { get: () => made || (made = each.made.map((make) => make())) });
      });
      part.size = counted(sum(part.all), 'token') + ', ' + counted(part.all.length, 'block');
    }
    if (index > 0 && found.removed.length > 0) {
      regions.push({
        key: 'removed',
        head: 'removed since ' + label(steps[index - 1]),
        size: counted(found.removed.length, 'block'),
        children: found.removed.map((block) => blockEntry(block, step, 'removed')),
      });
    }
    return new Outline('Tree of ' + label(step), regions);
  }

  function changesPanel(index) {
    const step = steps[index];
    const found = news[index];
    const entries = [
      ...found.changed.map(([old, block]) => ({ ...blockEntry(block, step, 'changed', old), open: true })),
      ...found.added.map((block) => blockEntry(block, step, 'added')),
      ...found.removed.map((block) => blockEntry(block, step, 'removed')),
      ...found.moved.map((block) => blockEntry(block, step, 'moved')),
    ];
    return new Outline('What changed in ' + label(step), entries);
  }

  function tokensPanel(index) {
    const list = listAt(index);
    const total = list.reduce((tokens, at) => tokens + blocks[at][TOKENS], 0);
    const groups = [
      ['region', (block) => REGIONS[block[REGION]]],
      ['role', (block) => name(block[ROLE])],
      ['kind', (block) => name(block[KIND]) || 'none'],
      ['tool', (block) => name(block[TOOL]) || 'no tool'],
    ];
    const panel = el('div', { class: 'tokens' });
    for (const [title, of] of groups) {
      const sums = new Map();
      for (const at of list) {
        const key = of(blocks[at]);
        const sum = sums.get(key) || [0, 0];
        sums.set(key, [sum[0] + blocks[at][TOKENS], sum[1] + 1]);
      }
      const rows = [...sums].sort((a, b) => b[1][0] - a[1][0] || (a[0] < b[0] ? -1 : 1));
      const most = Math.max(1, ...rows.map((row) => row[1][0]));
      const body = el('tbody');
      for (const [key, [tokens, number]] of rows) {
        const bar = el('div', { class: 'bar', 'aria-hidden': 'true' });
        bar.style.width = (tokens * 100) / most + '%';
        body.append(el('tr', {},
          el('th', { scope: 'row' }, key),
          el('td', { class: 'wide' }, bar),
          el('td', { class: 'number' }, count(tokens)),
          el('td', { class: 'number' }, percent(tokens, total)),
          el('td', { class: 'number' }, counted(number, 'block'))));
      }
      panel.append(el('table', { class: 'bars' },
        el('caption', {}, 'Tokens by ' + title),
        el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, title), el('td'),
          el('th', { scope: 'col', class: 'number' }, 'tokens'),
          el('th', { scope: 'col', class: 'number' }, 'share'),
          el('th', { scope: 'col', class: 'number' }, 'blocks'))),
        body));
    }
    return { root: panel };
  }

  const breaks = steps.flatMap((step, index) => (step.prefix && step.prefix.broken ? [index] : []));

  function prefixPanel(index) {
    const panel = el('div', { class: 'prefix' });
    const { prefix } = steps[index];
    if (data.no_prefixes) panel.append(el('p', {}, 'No prefixes: ' + visible(data.no_prefixes)));
    if (prefix) panel.append(prefixFacts(prefix, index));
    panel.append(el('h3', {}, counted(breaks.length, 'break') + ' of the prefix in this session'));
    const outline = new Outline('Breaks of the prefix', breaks.map((at) => {
      const { percent: kept, missed, broken } = steps[at].prefix;
      return {
        sign: at === index ? '\u2022' : '',
        head: label(steps[at]) + ' ' + visible(broken.cause),
        preview: visible(broken.place),
        size: kept + ' % kept, ' + counted(missed, 'token') + ' lost',
        act: () => choose(at, true),
      };
    }));
    panel.append(outline.root);
    return { root: panel, outline };
  }

  function prefixFacts(prefix, index) {
    const { broken } = prefix;
    const body = el('tbody');
    const fact = (key, ...value) => body.append(el('tr', {}, el('th', { scope: 'row' }, key), el('td', {}, ...value)));
    fact('request', counted(prefix.bytes, 'byte') + ', ' + counted(prefix.tokens, 'token') + ', as ' + data.provider + ' is sent it');
    if (prefix.percent === undefined) fact('kept', 'the first request has none before it');
    else fact('kept', prefix.percent + ' % of the request before, ' + counted(prefix.shared, 'byte'));
    if (prefix.percent !== undefined && !broken) fact('break', 'none: the request before is the start of this one');
    if (broken) {
      fact('break', span('broken', '\u2702 ' + visible(broken.cause)));
      fact('where', 'byte ' + count(broken.at) + ', ' + visible(broken.place));
      if (broken.block !== undefined) {
        const open = el('button', { type: 'button' }, visible(data.ids[broken.block]));
        open.addEventListener('click', () => openId(index, broken.block));
        fact('block', open);
      }
      fact('mend', broken.mend);
      fact('lost', counted(prefix.missed, 'token') + ' of the request before');
      if (broken.older !== undefined) fact('before', el('code', {}, visible(broken.older) || '(the end)'));
      if (broken.newer !== undefined) fact('now', el('code', {}, visible(broken.newer) || '(the end)'));
    }
    return el('table', { class: 'facts-table' }, el('caption', {}, 'Prefix of ' + label(steps[index])), body);
  }

  /** Shows a block in the tree, of this step or, if it is gone, of the one before. */
  function openId(index, id) {
    const has = (at) => at >= 0 && listAt(at).find((block) => blocks[block][ID] === id);
    const here = has(index);
    if (here !== undefined && here !== false) openBlock(index, here);
    else if (has(index - 1) !== undefined) openBlock(index - 1, has(index - 1));
  }

  function openBlock(index, block) {
    tab = 0;
    choose(index, false);
    const row = shown.outline.find('block ' + block);
    if (!row) return;
    if (row.getAttribute('aria-expanded') === 'false') shown.outline.expand(row);
    shown.outline.focus(row);
    row.scrollIntoView({ block: 'nearest' });
  }

  // --- The frame ---

  const TABS = [['Tree', treePanel], ['Changes', changesPanel], ['Tokens', tokensPanel], ['Prefix', prefixPanel]];
  let chosen = -1;
  let tab = 0;
  let shown = {};

  const rowsOfSteps = [];
  const timeline = el('div', { role: 'listbox', 'aria-label': 'Steps' });
  const heading = el('h2', { id: 'step' });
  const facts = el('p', { class: 'quiet' });
  const tabs = el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the step' });
  const panel = el('div', { role: 'tabpanel', id: 'panel', tabindex: 0 });
  const search = el('input', { type: 'search', id: 'search', 'aria-label': 'Search all steps', placeholder: 'Search (/)', autocomplete: 'off' });
  const results = el('section', { id: 'results', 'aria-label': 'Search results', hidden: true });
  const view = el('div', { id: 'view' }, heading, facts, tabs, panel);
  const live = el('p', { class: 'facts', role: 'status' });
  const help = el('dialog', { 'aria-label': 'Keys' },
    el('h2', {}, 'Keys'),
    el('table', {}, el('tbody', {}, ...[
      ['j k \u2193 \u2191', 'next and previous step'],
      ['Enter', 'open a step, a turn, a block, a result'],
      ['Escape', 'close it, back to the steps'],
      ['1 2 3 4', 'tree, changes, tokens, prefix'],
      ['b B', 'next and previous break of the prefix'],
      ['\u2192 \u2190', 'open and close a row of a tree'],
      ['Home End', 'first and last'],
      ['/', 'search'],
      ['?', 'these keys'],
    ].map(([keys, what]) => el('tr', {}, el('th', { scope: 'row' }, el('kbd', {}, keys)), el('td', {}, what))))),
    el('form', { method: 'dialog' }, el('button', {}, 'Close')));

  TABS.forEach(([title], at) => {
    const button = el('button', { type: 'button', role: 'tab', id: 'tab-' + at, 'aria-controls': 'panel' }, title);
    button.addEventListener('click', () => showTab(at));
    tabs.append(button);
  });
  tabs.addEventListener('keydown', (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    showTab((tab + move + TABS.length) % TABS.length);
    tabs.children[tab].focus();
  });

  function stepRow(step, index) {
    const bar = el('div', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.width = (step.tokens * 100) / most + '%';
    const model = step.model === undefined ? '' : name(step.model);
    const events = step.events.map(eventText).join(', ');
    const broken = step.prefix && step.prefix.broken;
    const row = el('div', { class: 'row', role: 'option', tabindex: -1, 'aria-selected': 'false' },
      el('div', { class: 'first' },
        span('name', label(step)),
        span('quiet', step.time ? visible(step.time).slice(0, 19).replace('T', ' ') : ''),
        span('quiet', counted(step.tokens, 'token'))),
      bar,
      el('div', {}, ...(index === 0 ? [span('quiet', counted(news[0].added.length, 'block'))] : changeText(news[index]))),
      el('div', { class: 'quiet' }, [events, model].filter(Boolean).join(' \u00b7 ')),
      broken ? el('div', { class: 'broken' }, '\u2702 ' + step.prefix.percent + ' % of the prefix kept: ' + visible(broken.cause)) : null);
    row.addEventListener('click', () => choose(index, true));
    return row;
  }

  function choose(index, focus) {
    if (index < 0 || index >= steps.length) return;
    closeSearch(false);
    const old = rowsOfSteps[chosen];
    if (old) {
      old.setAttribute('aria-selected', 'false');
      old.tabIndex = -1;
    }
    chosen = index;
    const row = rowsOfSteps[index];
    row.setAttribute('aria-selected', 'true');
    row.tabIndex = 0;
    if (focus) row.focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
    showStep();
  }

  function focusSteps() {
    if (rowsOfSteps[chosen]) rowsOfSteps[chosen].focus();
  }

  function showStep() {
    const step = steps[chosen];
    heading.textContent = label(step) + (step.time ? ', ' + visible(step.time) : '');
    const parts = [counted(step.tokens, 'token') + ' (' + data.tokenizer + (data.estimate ? ', estimate' : '') + ')', counted(step.bytes, 'byte') + ' of text'];
    if (step.model !== undefined) parts.unshift(name(step.model));
    const usage = ['sent', 'cached', 'written to the cache', 'replied'];
    const said = step.usage.map((number, at) => (number === null ? '' : count(number) + ' ' + usage[at])).filter(Boolean);
    if (said.length) parts.push('provider: ' + said.join(', '));
    if (step.stop) parts.push('stop: ' + visible(step.stop));
    facts.textContent = parts.join(' \u00b7 ');
    showTab(tab);
  }

  function showTab(at) {
    if (chosen < 0) return;
    tab = at;
    [...tabs.children].forEach((button, index) => {
      button.setAttribute('aria-selected', String(index === tab));
      button.tabIndex = index === tab ? 0 : -1;
    });
    panel.setAttribute('aria-labelledby', 'tab-' + tab);
    const made = TABS[tab][1](chosen);
    shown = { outline: made.outline || (made instanceof Outline ? made : null) };
    panel.replaceChildren(made.root);
  }

  /** Goes into the step: to what is new, or to the first row. */
  function enter() {
    const outline = shown.outline;
    if (!outline) {
      panel.focus();
      return;
    }
    const fresh = [...outline.entries].find(([, { entry }]) => entry.style && entry.key);
    outline.focus(fresh ? fresh[0] : outline.root.querySelector('.item'));
  }

  // --- Search ---

  let waiting = 0;
  let hits = null;

  function find() {
    const wanted = search.value.trim().toLowerCase();
    if (wanted === '') {
      closeSearch(false);
      return;
    }
    const found = [];
    let number = 0;
    blocks.forEach((block, at) => {
      const text = textAt(block[TEXT]);
      let place = text.toLowerCase().indexOf(wanted);
      if (place < 0) {
        const other = (name(block[TOOL]) + ' ' + data.ids[block[ID]]).toLowerCase();
        if (!other.includes(wanted)) return;
        place = 0;
      }
      number++;
      if (found.length < HITS) found.push([at, text, place]);
    });
    hits = new Outline('Blocks that match', found.map(([at, text, place]) => {
      const [from, to] = [firstOf[at], lastOf[at]];
      const steps_ = label(steps[from]) + (to > from ? ' to ' + label(steps[to]) : '');
      const block = blocks[at];
      return {
        head: steps_ + ' ' + name(block[ROLE]) + ' ' + name(block[KIND]) + ' ' + name(block[TOOL]),
        preview: (place > 30 ? '\u2026' : '') + preview(text.slice(Math.max(0, place - 30), place + 130)),
        size: counted(block[TOKENS], 'token'),
        act: () => {
          const index = chosen >= from && chosen <= to && listAt(chosen).includes(at) ? chosen : from;
          search.value = '';
          openBlock(index, at);
        },
      };
    }));
    const title = counted(number, 'block') + (number === 1 ? ' matches' : ' match') + (number > found.length ? ', the first ' + found.length + ' shown' : '');
    results.replaceChildren(el('h2', { role: 'status' }, title), hits.root);
    results.hidden = false;
    view.hidden = true;
  }

  function closeSearch(focus) {
    clearTimeout(waiting);
    hits = null;
    results.hidden = true;
    results.replaceChildren();
    view.hidden = false;
    if (focus) {
      search.value = '';
      focusSteps();
    }
  }

  search.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 120);
  });
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === 'ArrowDown') {
      event.preventDefault();
      clearTimeout(waiting);
      find();
      if (hits) hits.focus(hits.root.querySelector('.item'));
    }
  });

  // --- Keys ---

  function nextBreak(direction) {
    const rest = direction > 0 ? breaks.find((at) => at > chosen) : breaks.filter((at) => at < chosen).pop();
    if (rest === undefined) return;
    tab = 3;
    choose(rest, true);
  }

  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || help.open) return;
    const typing = event.target === search;
    const inSteps = event.target === document.body || timeline.contains(event.target);
    const acts = {
      Escape: () => (typing || !results.hidden ? closeSearch(true) : focusSteps()),
    };
    if (!typing && results.hidden) {
      Object.assign(acts, {
        j: () => choose(chosen + 1, true),
        k: () => choose(chosen - 1, true),
        b: () => nextBreak(1),
        B: () => nextBreak(-1),
      });
      TABS.forEach((_, at) => (acts[at + 1] = () => showTab(at)));
    }
    if (!typing) {
      acts['/'] = () => search.focus();
      acts['?'] = () => help.showModal();
    }
    if (inSteps && results.hidden) {
      Object.assign(acts, {
        ArrowDown: () => choose(chosen + 1, true),
        ArrowUp: () => choose(chosen - 1, true),
        PageDown: () => choose(Math.min(chosen + 10, steps.length - 1), true),
        PageUp: () => choose(Math.max(chosen - 10, 0), true),
        Home: () => choose(0, true),
        End: () => choose(steps.length - 1, true),
        Enter: enter,
      });
    }
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // --- Start ---

  document.title = visible(data.title) + ' \u00b7 pactql';
  const said = [counted(steps.length, 'step'), counted(breaks.length, 'break') + ' of the prefix'];
  if (data.reconstructed) said.push('requests reconstructed from a transcript');
  if (data.redacted) said.push(counted(data.redacted, 'place') + ' redacted');
  live.textContent = said.join(' \u00b7 ');
  const keys = el('button', { type: 'button', on: { click: () => help.showModal() } }, 'Keys (?)');
  document.body.append(
    el('header', { class: 'top' }, el('h1', {}, visible(data.title)), live, search, keys),
    el('main', { class: 'columns' },
      el('section', { class: 'timeline', 'aria-label': 'Timeline' }, timeline),
      el('section', { class: 'step', 'aria-label': 'Step' }, results, view)),
    help);
  const most = Math.max(1, ...steps.map((step) => step.tokens));
  steps.forEach((step, index) => rowsOfSteps.push(stepRow(step, index)));
  timeline.append(...rowsOfSteps);
  if (steps.length) choose(steps.length - 1, true);
  else panel.append(el('p', {}, 'The session has no committed snapshot.'));
})();
