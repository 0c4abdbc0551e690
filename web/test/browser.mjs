// A browser, pages of sessions, and what a page asked for and complained about.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import axe from 'axe-core';
import { chromium } from 'playwright-core';

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export const root = fileURLToPath(new URL('../../', import.meta.url));
export const pactql = process.env.PACTQL ?? join(root, 'target/debug/pactql');
export const fixture = (name) => join(root, 'fixtures', name);
/** Where pictures go. */
export const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), 'pactql-pictures-'));
export const folder = mkdtempSync(join(tmpdir(), 'pactql-page-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

let browser;
export async function start() {
  const executablePath = process.env.PACTQL_CHROMIUM ?? '/usr/bin/chromium';
  // Each start has a new and empty folder for the user's data.
  browser = await chromium.launch({ executablePath, args: FLAGS });
}
export const stop = () => browser?.close();

/** The page that `share --html` writes of a session. */
export function shared(session, ...more) {
  const file = join(folder, `page-${Math.random().toString(36).slice(2)}.html`);
  execFileSync(pactql, ['share', session, '--html', '-o', file, ...more], { stdio: ['ignore', 'ignore', 'ignore'] });
  // While the page is worked on: the session of the program in the page that was built last.
  if (process.env.PAGE) return embedded(JSON.parse(/<script id="data" type="application\/json">(.*?)<\/script>/s.exec(readFileSync(file, 'utf8'))[1]));
  return pathToFileURL(file).href;
}

/** The page with data that no session has. */
export function embedded(data) {
  const page = readFileSync(join(root, 'web/dist/page.html'), 'utf8');
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  const [head, script] = page.split('<script>');
  const file = join(folder, `page-${Math.random().toString(36).slice(2)}.html`);
  writeFileSync(file, `${head.replace("connect-src 'self'", "connect-src 'none'")}<script id="data" type="application/json">${json}</script>\n<script>${script}`);
  return pathToFileURL(file).href;
}

/** Opens an address. The page remembers its requests, and what the browser complained about. */
export async function open(url, { width = 1400, height = 900, scheme = 'light', motion = 'no-preference' } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion });
  const page = await context.newPage();
  page.asked = [];
  page.complaints = [];
  page.on('request', (request) => page.asked.push(request.url()));
  page.on('websocket', (socket) => page.asked.push(socket.url()));
  page.on('console', (message) => page.complaints.push(message.text()));
  page.on('pageerror', (error) => page.complaints.push(error.message));
  page.on('dialog', (dialog) => {
    page.complaints.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(url);
  await page.waitForSelector('#strip, main p');
  page.press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  page.close_ = page.close;
  page.close = () => context.close();
  page.step = () => page.textContent('main h2').then((text) => /Step (\S+) of/.exec(text)[1]);
  page.focus_ = () => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);
  /** A frame after which everything that was asked for is drawn. */
  page.frame = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
  return page;
}

/** What axe finds wrong, in words. */
export async function flaws(page) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`);
}

/** Whether an element is inside the window and not covered by what scrolls. */
export const inView = (page, selector) =>
  page.evaluate((selector) => {
    const element = document.querySelector(selector);
    if (!element) return 'nothing';
    const box = element.getBoundingClientRect();
    const around = document.querySelector('main').getBoundingClientRect();
    return box.top >= around.top - 1 && box.top < around.bottom && box.left < around.right ? 'seen' : JSON.stringify(box);
  }, selector);
