// The page that `share --html` writes: what it shows, by which keys, and that it asks for nothing.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { embedded, fixture, flaws, inView, open, shared, start, stop } from './browser.mjs';
import { HOSTILE, hostile, large } from './sessions.mjs';

before(start);
after(stop);

const release = shared(fixture('release.claude-code.jsonl'));
const agent = shared(fixture('support-agent.jsonl'));
const TABS = ['New', 'Request', 'Changes', 'Tokens', 'Cache', 'Tree'];
const tabOf = (page) => page.textContent('main [role=tab][aria-selected=true]');

/** Nothing but the page itself was asked for, and nobody complained. */
function isQuiet(page, url) {
  assert.deepEqual(page.asked.filter((asked) => !asked.startsWith('data:,')), [url]);
  assert.deepEqual(page.complaints, []);
}

test('the overview has all steps, what they cost, and what happened', async () => {
  const page = await open(release);
  assert.equal(await page.title(), 'Prepare release 1.4.0 of kestrel: changelog, version, tests. Do not push. \u00b7 pactql');
  const facts = await page.textContent('.facts');
  for (const wanted of ['$0.138 in total', '11 requests', '109k tokens in', '78.7 % from the prompt cache', 'claude-code', 'reconstructed']) {
    assert.ok(facts.includes(wanted), `${wanted} in ${facts}`);
  }
  const strip = page.locator('#strip');
  assert.equal(await strip.getAttribute('aria-valuemax'), '13');
  assert.equal(await strip.getAttribute('aria-valuetext'), 'step 13 of 13, 4,654 tokens in, 36 out, reply, cache miss, model claude-opus-4-5');
  // The strip is drawn: cached input is in it, and the marks.
  const colours = await page.evaluate(() => {
    const canvas = document.getElementById('strip');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) seen.add(data.slice(at, at + 3).join());
    const style = getComputedStyle(canvas);
    return Object.fromEntries(['input', 'cached', 'output', 'cost', 'error', 'compaction', 'miss', 'model'].map((name) => {
      const hex = style.getPropertyValue('--' + name).trim();
      return [name, seen.has([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join())];
    }));
  });
  assert.deepEqual(new Set(Object.values(colours)), new Set([true]), JSON.stringify(colours));
  // A click chooses the step below it.
  const box = await strip.boundingBox();
  await page.mouse.click(box.x + (box.width * 5.5) / 13, box.y + 40);
  assert.equal(await page.step(), '6');
  assert.match(await page.textContent('.alert.failed'), /1 tool error/);
  assert.match(await page.textContent('.card.failed h4'), /error of Bash/);
  isQuiet(page, release);
  await page.close();
});

test('every key does what the help says', async () => {
  const page = await open(release);
  for (const [key, step] of [
    ['Home', '1'], ['ArrowRight', '2'], ['j', '3'], ['k', '2'], ['ArrowLeft', '1'], ['ArrowLeft', '1'], ['PageDown', '11'], ['PageUp', '1'],
    ['e', '6'], ['e', '6'], ['c', '9'], ['b', '10'], ['b', '13'], ['B', '10'], ['C', '9'], ['E', '6'], ['End', '13'], ['j', '13'],
  ]) {
    await page.press(key);
    assert.equal(await page.step(), step, key);
    assert.equal(await page.focus_(), 'strip', key);
  }
  for (let at = 0; at < TABS.length; at++) {
    await page.press(String(at + 1));
    assert.equal(await tabOf(page), TABS[at]);
  }
  // The arrows move the tab where the tabs have the focus, and the step elsewhere.
  await page.focus('#tab-tree');
  await page.press('ArrowRight');
  assert.equal(await tabOf(page), 'New');
  assert.equal(await page.focus_(), 'tab-new');
  await page.press('ArrowLeft', 'Escape');
  assert.equal(await page.focus_(), 'strip');
  // The step scrolls.
  await page.press('2', 'ArrowDown', 'ArrowDown');
  assert.equal(await page.evaluate(() => document.querySelector('main').scrollTop), 180);
  await page.press('ArrowUp');
  assert.equal(await page.evaluate(() => document.querySelector('main').scrollTop), 90);
  // Blocks.
  await page.press('1', 'Home', 'J');
  assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /user/);
  await page.press('J', 'J', 'K');
  assert.equal(await page.evaluate(() => [...document.querySelectorAll('main .card')].indexOf(document.activeElement)), 1);
  // The list of steps.
  await page.press('t');
  await page.frame();
  assert.equal(await page.focus_(), 'steps');
  await page.press('ArrowDown', 'ArrowDown');
  assert.equal(await page.step(), '3');
  assert.equal(await page.getAttribute('#steps', 'aria-activedescendant'), 'steps-2');
  assert.equal(await page.textContent('#steps-2 b'), 'step 3');
  await page.press('End', 'Enter');
  assert.deepEqual([await page.step(), await page.focus_()], ['13', 'strip']);
  // Help: each key of the page is in it.
  await page.press('?');
  const keys = await page.textContent('dialog[open]');
  for (const key of ['Home', 'Page Up', 'c e b', '1 \u2026 6', '/', 'n N', 't', 'J K', 'Enter', 'Escape', '?']) assert.ok(keys.includes(key), key);
  assert.match(keys, /need `pactql view`/);
  await page.press('Escape');
  assert.equal(await page.locator('dialog[open]').count(), 0);
  isQuiet(page, release);
  await page.close();
});

test('each view of a step', async () => {
  const page = await open(release);
  // What is new, whole, with roles and tools.
  await page.press('Home', 'j', 'j');
  assert.deepEqual(await page.locator('main .card h4').allTextContents(), ['+result of Read', '+result of Read', '+assistant', '+assistant calls Task']);
  assert.deepEqual(await page.locator('main .region').allTextContents(), ['Sent', 'Reply, ended by tool_use']);
  assert.match(await page.textContent('main .card >> nth=3'), /"subagent_type": "reviewer"/);
  await page.click('main .card >> nth=3 >> text=as sent');
  assert.match(await page.textContent('main .card >> nth=3'), /"subagent_type":"reviewer"/);
  assert.match(await page.getAttribute('main .card h4', 'title'), /^block cb:5-1, turn mt:3, region \^seq, kind result, call toolu_02$/);
  // The request.
  await page.press('2');
  assert.equal(await page.locator('main .card').count(), 10);
  assert.match(await page.textContent('.parameters'), /"model":"claude-sonnet-4-5"/);
  // What changed over the compaction.
  await page.press('Home', 'c', '3');
  assert.equal(await page.textContent('main .region'), 'Gone (21)');
  assert.ok((await page.locator('main .card').count()) < 21, 'only what is seen is in the document');
  for (let at = 0; at < 6; at++) {
    await page.evaluate(() => document.querySelector('main').scrollBy(0, 9000));
    await page.frame();
  }
  assert.equal(await page.textContent('main .region >> nth=-1'), 'New (1)');
  // Tokens: four tables of bars, each with the sum of the step.
  await page.press('Home', 'j', 'j', '4');
  const sums = await page.evaluate(() => [...document.querySelectorAll('table.bars')].slice(0, 4).map((table) => [...table.tBodies[0].rows].reduce((sum, row) => sum + Number(row.cells[1].textContent), 0)));
  assert.deepEqual(sums, [213, 213, 213, 213]);
  await page.click('table.bars >> nth=4 >> button >> nth=0');
  assert.deepEqual([await tabOf(page), await page.textContent('.card.chosen h4')], ['Request', '+assistant calls Task']);
  // The cache.
  await page.press('End', '5');
  const cache = await page.textContent('#panel');
  for (const wanted of ['another model', 'byte 16', 'stay with one model', '"model":"claude-opus-4-5"', '2 breaks and 0 misses']) assert.ok(cache.includes(wanted), `${wanted} in ${cache}`);
  await page.click('#panel .rows button >> nth=0');
  assert.equal(await page.step(), '10');
  // The tree.
  await page.press('Home', 'j', '6');
  assert.equal(await page.locator('[role=treeitem]').count(), 9);
  await page.focus('[role=tree]');
  await page.press('ArrowDown', 'ArrowLeft');
  assert.equal(await page.getAttribute('.node.active', 'aria-expanded'), 'false');
  assert.equal(await page.locator('[role=treeitem]').count(), 6);
  await page.press('ArrowRight', 'End', 'ArrowUp', 'Enter');
  assert.deepEqual([await tabOf(page), await page.textContent('.card.chosen h4')], ['Request', '+assistant calls Read']);
  isQuiet(page, release);
  await page.close();
});

test('what changed in a text is shown in words, with three lines around it', async () => {
  const text = (time) => `Be brief.\nIt is ${time}.\n${'Say what is so.\n'.repeat(9)}`;
  const block = (at, words) => [0, 0, null, 0, 1, null, null, null, 0, words.length, 9, at];
  const data = { ...large(0), title: 'words', about: [null, null, null], names: ['system', 'text'], ids: ['rules'] };
  data.texts = [text('10:01'), text('10:02')];
  data.blocks = data.texts.map((words, at) => block(at, words));
  const step = (cycle, changes) => ({ cycle, tokens: 9, bytes: 9, usage: [null, null, null, null], made: true, events: [], changes });
  data.steps = [step('1', [[0, 0, [0]]]), step('2', [[0, 1, [1]]])];
  const page = await open(embedded(data));
  await page.press('3');
  assert.deepEqual(await page.locator('#panel del, #panel ins').allTextContents(), ['01', '02']);
  assert.match(await page.textContent('#panel .text'), /6 lines as before/);
  assert.equal(await page.textContent('main h2 .happened'), '1 changed');
  await page.close();
});

test('the price of a reply of unknown tokens is said to be left out', async () => {
  const step = (cycle, output) => ({ cycle, tokens: 9, bytes: 9, usage: [1000, 0, 0, output], made: true, cost: 2500000, events: [], changes: [] });
  const page = await open(embedded({ ...large(0), title: 'unknown', about: [null, null, null], names: [], ids: [], texts: [], blocks: [], steps: [step('1', 7), step('2', null)] }));
  assert.match(await page.textContent('.facts'), /1 request without the provider's count of the reply, which is not in the sums/);
  await page.press('Home');
  assert.doesNotMatch(await page.textContent('main'), /without the reply/);
  await page.press('End');
  assert.match(await page.textContent('main'), /\$0\.00250?0? without the reply, whose tokens are not known/);
  await page.close();
});

test('search marks, counts, and scrolls to each match', async () => {
  const page = await open(release);
  await page.press('/');
  assert.equal(await page.focus_(), 'search');
  await page.keyboard.type('CHANGELOG');
  await page.press('Enter');
  await page.waitForSelector('#hit');
  assert.match(await page.textContent('.count'), /^1[34] of \d+ matches$|^\d+ of \d+ matches$/);
  const total = Number(/of (\d+)/.exec(await page.textContent('.count'))[1]);
  assert.ok(total > 9, String(total));
  assert.ok((await page.textContent('.legend')).includes('with matches'));
  const seen = new Set();
  await page.press('Escape', 'Home');
  assert.equal(await page.inputValue('#search'), '');
  await page.fill('#search', 'changelog');
  await page.waitForFunction((total) => document.querySelector('.count').textContent === `${total} matches`, total);
  await page.evaluate(() => document.activeElement.blur());
  for (let at = 0; at < total; at++) {
    await page.press('n');
    await page.frame();
    seen.add(await page.textContent('.count'));
    const name = await page.evaluate(() => document.querySelector('#hit')?.textContent ?? document.querySelector('.card.chosen')?.textContent);
    assert.match(name, /changelog/i);
    if (await page.locator('#hit').count()) assert.equal(await inView(page, '#hit'), 'seen');
  }
  assert.equal(seen.size, total);
  await page.press('N');
  assert.equal(await page.textContent('.count'), `${total - 1} of ${total} matches`);
  await page.fill('#search', 'nothing has this');
  await page.waitForFunction(() => document.querySelector('.count').textContent === 'no match');
  isQuiet(page, release);
  await page.close();
});

test('every step and block has an address', async () => {
  const first = await open(`${release}#step=4&tab=request&block=cb%3A8-1`);
  assert.deepEqual([await first.step(), await tabOf(first)], ['4', 'Request']);
  await first.frame();
  assert.equal(await first.textContent('.card.chosen h4'), '+result of Task');
  assert.equal(await inView(first, '.card.chosen'), 'seen');
  // What is shown is in the address, and the address of a block leads to it.
  await first.press('j', '4');
  await first.waitForFunction(() => location.hash === '#step=5&tab=tokens');
  await first.press('1');
  const href = await first.getAttribute('.card .address', 'href');
  assert.match(href, /^#step=5&block=cb%3A9-1$|^#step=5&block=cb/);
  await first.press('Home');
  await first.evaluate((href) => (location.hash = href), href);
  await first.waitForFunction(() => document.querySelector('main h2').textContent.startsWith('Step 5 '));
  await first.waitForSelector('.card.chosen');
  // A step that there is not is the newest.
  const other = await open(`${release}#step=99&tab=none`);
  assert.deepEqual([await other.step(), await tabOf(other)], ['13', 'New']);
  const found = await open(`${release}#search=kestrel`);
  await found.waitForFunction(() => /matches/.test(document.querySelector('.count').textContent));
  assert.equal(await found.inputValue('#search'), 'kestrel');
  for (const page of [first, other, found]) await page.close();
});

test('a hostile session is shown, harms nothing, and nothing is asked for', async () => {
  const url = shared(hostile());
  for (const scheme of ['light', 'dark']) {
    const page = await open(url, { scheme });
    let all = '';
    await page.fill('#search', 'script');
    for (const step of ['Home', 'j', 'j', 'j']) {
      await page.evaluate(() => document.activeElement.blur());
      for (const key of [step, '1', '2', '3', '4', '5', '6', 'n', '1']) {
        await page.press(key);
        await page.frame();
        all += await page.evaluate(() => document.body.innerText);
      }
      await page.evaluate(() => document.querySelectorAll('main button:not(:disabled)').forEach((button) => button.click()));
    }
    await page.evaluate(() => document.querySelectorAll('main [title], [role=treeitem]').forEach((element) => element.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))));
    assert.equal(await page.evaluate(() => globalThis.harmed === undefined), true);
    assert.deepEqual(await page.evaluate(() => ({
      elements: document.querySelectorAll('img, iframe, object, embed, svg, video, audio, form[action], link:not([rel=icon]), style ~ style').length,
      scripts: document.querySelectorAll('script').length,
      links: [...document.querySelectorAll('a')].filter((link) => !link.getAttribute('href').startsWith('#')).length,
      handlers: [...document.querySelectorAll('*')].some((element) => [...element.attributes].some(({ name }) => name.startsWith('on'))),
    })), { elements: 0, scripts: 2, links: 0, handlers: false });
    assert.ok(all.includes(HOSTILE), 'the text is shown as it is');
    assert.ok(all.includes('a\u27e8U+202E\u27e9b\u27e8U+200B\u27e9c\u2407'), 'what has no shape is shown');
    assert.ok(!all.includes('\u202e'));
    isQuiet(page, url);
    // What a text would have to do to run or to ask for something, the policy of the page refuses.
    const refused = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'globalThis.harmed = 3';
      document.body.append(script);
      const picture = new Image();
      const asked = new Promise((done) => { picture.onerror = () => done('refused'); picture.onload = () => done('loaded'); });
      picture.src = 'http://127.0.0.1:9/x.png';
      const fetched = await fetch('http://127.0.0.1:9/x').then(() => 'answered', (error) => error.name);
      return [globalThis.harmed === undefined, await asked, fetched];
    });
    assert.deepEqual(refused, [true, 'refused', 'TypeError']);
    assert.ok(page.complaints.filter((text) => text.includes('Content Security Policy')).length >= 3, page.complaints.join('\n'));
    await page.close();
  }
});

test('names and roles, light and dark, wide and on a phone: axe finds nothing', async () => {
  for (const [width, height] of [[1400, 900], [390, 844]]) {
    for (const scheme of ['light', 'dark']) {
      const page = await open(release, { width, height, scheme });
      await page.fill('#search', 'changelog');
      await page.press('Enter');
      for (const steps of ['Home', 'e', 'c', 'End']) {
        await page.press('Escape', steps);
        for (let at = 1; at <= TABS.length; at++) {
          if (steps !== 'e' && at > 2 && steps !== 'End') continue;
          await page.press(String(at));
          await page.frame();
          assert.deepEqual(await flaws(page), [], `${width} ${scheme} ${steps} ${TABS[at - 1]}`);
        }
      }
      if (width === 390) {
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
        await page.click('.menu');
        await page.frame();
        assert.equal(await page.locator('#steps .option').count(), 13);
        assert.equal(await page.isVisible('#steps-12'), true);
        assert.deepEqual(await flaws(page), [], `${scheme} steps`);
      }
      await page.press('Escape', '?');
      assert.deepEqual(await flaws(page), [], `${scheme} help`);
      await page.close();
    }
  }
});

test('the order of Tab: search, strip, steps, tabs, blocks; what is redacted is gone before anything else', async () => {
  const url = shared(fixture('support-agent.jsonl'), '--redact', 'LC-[0-9]+');
  const page = await open(url);
  const order = [];
  await page.evaluate(() => document.activeElement.blur());
  for (let at = 0; at < 9; at++) {
    await page.press('Tab');
    order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.textContent));
  }
  assert.deepEqual(order.filter((id) => ['search', 'strip', 'steps', 'tab-new'].includes(id)), ['search', 'strip', 'steps', 'tab-new']);
  const content = await page.content();
  assert.ok(!/LC-[0-9]/.test(content) && content.includes('[redacted]'));
  assert.match(await page.textContent('.facts'), /places? redacted/);
  await page.close();
});

test('with reduced motion nothing moves', async () => {
  const page = await open(agent, { motion: 'reduce' });
  const moving = await page.evaluate(() => document.getAnimations().length);
  assert.equal(moving, 0);
  await page.close();
});

test('a thousand steps and 5 MB: few elements, and times to read', async () => {
  const url = embedded(large());
  const page = await open(url);
  const paint = await page.evaluate(() => new Promise((done) => {
    const look = () => {
      const [first] = performance.getEntriesByName('first-contentful-paint');
      if (first) done(first.startTime);
      else setTimeout(look, 20);
    };
    look();
  }));
  const elements = () => page.evaluate(() => document.querySelectorAll('*').length);
  // From the key to the frame that shows its step.
  const pressed = async (keys) => {
    const times = await page.evaluate(async (keys) => {
      const times = [];
      for (const key of keys) {
        const start = performance.now();
        document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
        await new Promise((done) => requestAnimationFrame(() => { const { port1, port2 } = new MessageChannel(); port1.onmessage = done; port2.postMessage(0); }));
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b);
    }, keys);
    return [0.5, 0.9, 1].map((part) => times[Math.ceil(times.length * part) - 1].toFixed(0) + ' ms');
  };
  console.log(`first paint ${paint.toFixed(0)} ms`);
  for (const [name, tab] of [['new', '1'], ['request', '2'], ['changes', '3'], ['tokens', '4'], ['cache', '5'], ['tree', '6']]) {
    await page.press('End', tab);
    const keys = [...Array(60).fill('ArrowLeft'), ...Array(30).fill('PageUp'), ...Array(30).fill('ArrowRight')];
    const [half, most, worst] = await pressed(keys);
    const count = await elements();
    console.log(`a key press in ${name}: median ${half}, p90 ${most}, longest ${worst}; ${count} elements`);
    assert.ok(count < 2500, `${name}: ${count}`);
  }
  // The needle lies behind a megabyte of text that is cut.
  await page.press('1');
  const start = Date.now();
  await page.fill('#search', 'needle');
  await page.press('Enter');
  await page.waitForSelector('#hit');
  console.log(`search of 5 MB to the match ${Date.now() - start} ms`);
  await page.frame();
  await page.frame();
  assert.equal(await page.step(), '501');
  assert.equal(await inView(page, '#hit'), 'seen');
  await page.press('Escape', 'Home', '1');
  await page.evaluate(() => (location.hash = '#step=501'));
  await page.waitForFunction(() => document.querySelector('main h2').textContent.startsWith('Step 501 '));
  const whole = Date.now();
  await page.click('text=/Show all 1,000,\\d+ characters/');
  await page.frame();
  console.log(`a text of 1 MB shown whole ${Date.now() - whole} ms`);
  assert.match(await page.textContent('.more >> nth=0'), /Show less/);
  isQuiet(page, url);
  await page.close();
});
