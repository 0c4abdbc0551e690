// The page with its server, `pactql view`: sessions, the box for selectors, another run, and what grows while it is open.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fixture, flaws, folder, inView, open, pactql, start, stop } from './browser.mjs';
import { HOSTILE, hostile } from './sessions.mjs';

const there = spawnSync(pactql, ['view', '--help']).status === 0;
const logs = join(folder, 'logs');
const growing = join(logs, 'leap-day.jsonl');
const lines = readFileSync(fixture('leap-day.claude-code.jsonl'), 'utf8').split('\n').filter(Boolean);
const [half, whole] = [lines.slice(0, lines.length - 6), lines];
let url;
let store;
const servers = [];

/** The address of a new server. */
function serve(where) {
  const server = spawn(pactql, ['view', where, '--no-open'], { stdio: ['ignore', 'pipe', 'pipe'] });
  servers.push(server);
  let said = '';
  return new Promise((done, fail) => {
    const look = (part) => {
      said += part;
      const found = /http:\/\/\S+/.exec(said);
      if (found) done(found[0]);
    };
    server.stdout.on('data', look);
    server.stderr.on('data', look);
    server.on('exit', (code) => fail(new Error(`pactql view ended with ${code}: ${said}`)));
  });
}

before(async () => {
  await start();
  if (!there) return;
  mkdirSync(logs);
  copyFileSync(fixture('release.claude-code.jsonl'), join(logs, 'release.jsonl'));
  copyFileSync(fixture('travel.openai.json'), join(logs, 'travel.json'));
  writeFileSync(growing, half.join('\n') + '\n');
  store = join(folder, 'agents.db');
  spawnSync(pactql, ['import', join(logs, 'release.jsonl'), '-o', store], { stdio: 'ignore' });
  url = await serve(logs);
});
after(async () => {
  await stop();
  for (const server of servers) server.kill('SIGINT');
});

const skip = there ? false : 'SKIPPED: the program has no `view`';
const session = (page, title) => page.click(`#sessions .option:has-text("${title}")`);
const step = (page, wanted) => page.waitForFunction((wanted) => document.querySelector('main h2')?.textContent.startsWith(`Step ${wanted} `), wanted);

/** Opens the page on a session. */
async function view(title, options) {
  const page = await open(url, options);
  await page.waitForSelector('#sessions .option');
  if (options?.width === 390) await page.click('.menu');
  await session(page, title);
  await page.waitForFunction((title) => document.title.startsWith(title), title);
  return page;
}

test('the list of sessions is searched and read by keyboard', { skip }, async () => {
  const page = await open(url);
  await page.waitForSelector('#sessions .option');
  // A subagent is a session of its own.
  assert.equal(await page.locator('#sessions .option').count(), 4);
  const row = await page.textContent('#sessions .option:has-text("Prepare release") >> nth=0');
  for (const wanted of ['kestrel', 'claude-code', '2026-04-07', 'steps', '$']) assert.ok(row.includes(wanted), `${wanted} in ${row}`);
  await page.press('l');
  await page.frame();
  assert.equal(await page.focus_(), 'session-search');
  await page.keyboard.type('changelog');
  await page.waitForFunction(() => document.querySelectorAll('#sessions .option').length === 1);
  await page.press('ArrowDown', 'Enter');
  await page.waitForFunction(() => document.title.startsWith('Prepare release'));
  assert.ok(decodeURIComponent(page.url()).includes('release.jsonl') || (await page.waitForFunction(() => location.hash.includes('release')), true));
  assert.ok(!page.url().includes('token'), 'the token is not in the address');
  // Nothing is asked for from anywhere else.
  const origin = new URL(url).origin;
  assert.deepEqual(page.asked.filter((asked) => !asked.startsWith(origin) && !asked.startsWith('data:,')), []);
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test('the box for selectors completes, shows errors at their place, marks what is found, and explains', { skip }, async () => {
  const page = await view('Prepare release');
  await page.press('Escape', 's');
  assert.equal(await page.focus_(), 'selector');
  await page.keyboard.type(".cb[ki");
  await page.waitForSelector('#suggestions li:has-text("kind")');
  await page.press('ArrowDown', 'Enter');
  assert.equal(await page.inputValue('#selector'), '.cb[kind');
  await page.keyboard.type('=res');
  await page.waitForSelector("#suggestions li:has-text(\"'result'\")");
  // The error of what is not whole yet, with its place and a way out.
  await page.waitForSelector('#selector-error .wrong');
  assert.match(await page.textContent('#selector-error'), /the closing `\]` is missing/);
  assert.equal(await page.getAttribute('#selector', 'aria-invalid'), 'true');
  await page.press('ArrowDown', 'Tab');
  await page.keyboard.type(']');
  assert.equal(await page.inputValue('#selector'), ".cb[kind='result']");
  await page.press('Enter');
  await page.waitForFunction(() => document.querySelector('.said').textContent === 'Found in 10 steps, at most 8 nodes in one.');
  assert.equal(await page.locator('#selector-error').count(), 0);
  assert.match(await page.textContent('.legend'), /9 of 13 with matches/);
  await page.press('Escape', 'Home', 'm');
  await step(page, '2');
  assert.deepEqual(await page.locator('.card.matched h4').allTextContents(), ['+result of Bash']);
  await page.press('m', 'm', 'M');
  await step(page, '3');
  await page.click('text=Plan');
  await page.waitForSelector('.plan');
  assert.match(await page.textContent('.plan'), /normalized\.cb\[kind='result'\].*strategy.*match {2}anywhere: block, kind = \?1/s);
  assert.deepEqual(await flaws(page), []);
  // What is wrong is underlined where it is.
  await page.fill('#selector', '.cb[role=~x] .mt[');
  await page.waitForSelector('#selector-error .wrong');
  assert.deepEqual(await flaws(page), []);
  await page.press('Escape');
  await page.close();
});

test('another run beside this one: where they part, in words', { skip }, async () => {
  const page = await view('Prepare release');
  await page.press('Escape', '7');
  await page.selectOption('#other', { index: 1 });
  await page.waitForSelector('.verdict');
  assert.match(await page.textContent('.verdict'), /step/);
  assert.equal(await page.locator('.beside section').count(), 2);
  assert.deepEqual(await flaws(page), []);
  await page.waitForFunction(() => location.hash.includes('beside='));
  await page.close();
});

test('a log that grows is shown without reload, and what is read stays where it is', { skip }, async () => {
  const page = await view('Users of heron');
  await page.press('Escape');
  const before = Number(await page.getAttribute('#strip', 'aria-valuemax'));
  const loaded = page.asked.length;
  await page.press('Home', 'j');
  await page.press('2');
  await page.evaluate(() => document.querySelector('main').scrollTo(0, 200));
  const place = await page.evaluate(() => document.querySelector('main').scrollTop);
  appendFileSync(growing, whole.slice(half.length, half.length + 4).join('\n') + '\n');
  await page.waitForFunction((before) => Number(document.getElementById('strip').ariaValueMax) > before, before, { timeout: 20_000 });
  assert.equal(await page.step(), '2');
  assert.equal(await page.evaluate(() => document.querySelector('main').scrollTop), place);
  assert.match(await page.textContent('.fresh'), /new step/);
  assert.ok(page.asked.slice(loaded).every((asked) => !asked.includes('token=')), 'no reload');
  // With follow, the page moves on.
  await page.press('f');
  const middle = Number(await page.getAttribute('#strip', 'aria-valuemax'));
  appendFileSync(growing, whole.slice(half.length + 4).join('\n') + '\n');
  await page.waitForFunction((middle) => Number(document.getElementById('strip').ariaValueMax) > middle, middle, { timeout: 20_000 });
  await page.frame();
  assert.equal(await page.getAttribute('#strip', 'aria-valuenow'), await page.getAttribute('#strip', 'aria-valuemax'));
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test('an address of a block opens its session; axe finds nothing, wide, dark and on a phone', { skip }, async () => {
  const wide = await view('Prepare release', { scheme: 'dark' });
  await wide.press('Escape', 'Home', 'j', 'j');
  assert.deepEqual(await flaws(wide), []);
  await wide.waitForFunction(() => location.hash.includes('step=3'));
  const hash = await wide.getAttribute('main .card >> nth=2 >> .address', 'href');
  await wide.close();
  const page = await open(url + hash, { width: 390, height: 844 });
  await step(page, '3');
  await page.waitForSelector('.card.chosen');
  assert.equal(await inView(page, '.card.chosen'), 'seen');
  assert.deepEqual(await flaws(page), []);
  await page.click('.menu');
  assert.deepEqual(await flaws(page), []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await page.close();
});

test('a store: its sessions with what they cost, and those that come', { skip }, async () => {
  const page = await open(await serve(store));
  await page.waitForFunction(() => /\$0\.138/.test(document.querySelector('#sessions')?.textContent ?? ''));
  assert.equal(await page.locator('#sessions .option').count(), 2);
  spawnSync(pactql, ['import', join(logs, 'travel.json'), '-o', store], { stdio: 'ignore' });
  await page.waitForFunction(() => document.querySelectorAll('#sessions .option').length === 3, null, { timeout: 20_000 });
  await session(page, 'Lindau');
  await page.waitForFunction(() => document.title.startsWith('I need to be in Lindau'));
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test('a hostile session asks for nothing but the server, and harms nothing', { skip }, async () => {
  const address = await serve(hostile());
  const page = await open(address);
  await page.waitForSelector('main .card');
  await page.press('Escape');
  let all = '';
  for (const step of ['Home', 'j', 'j']) {
    for (const key of [step, '1', '2', '3', '4', '5', '6', '7']) {
      await page.press(key);
      await page.frame();
      all += await page.evaluate(() => document.body.innerText);
    }
  }
  // What completion offers is hostile too.
  await page.press('s');
  for (const typed of ['.cb[kind=', '.cb[data_call_name=', '.']) {
    await page.fill('#selector', typed);
    await page.waitForSelector('#suggestions li');
    all += await page.textContent('#suggestions');
  }
  assert.ok(all.includes(HOSTILE));
  assert.equal(await page.evaluate(() => globalThis.harmed === undefined), true);
  assert.equal(await page.evaluate(() => document.querySelectorAll('img, iframe, object, embed, svg, video, audio').length), 0);
  const { origin } = new URL(address);
  assert.deepEqual(page.asked.filter((asked) => !asked.startsWith(origin) && !asked.startsWith('data:,')), []);
  await page.close();
});
