// The pictures of the documents. With PICTURES they are written there; without, to a folder that is thrown away.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fixture, open, pictures, shared, start, stop } from './browser.mjs';

before(start);
after(stop);

const SHOTS = [
  ['page', { width: 1100, height: 640 }, ['Home', 'e']],
  ['page-changes', { width: 1100, height: 640, scheme: 'dark' }, ['Home', 'c', 'c', '3']],
  ['page-cache', { width: 1100, height: 640 }, ['Home', 'b', '5']],
  ['page-phone', { width: 390, height: 844 }, ['Home', 'e']],
];

test('pictures of the page', async () => {
  const url = shared(fixture('release.claude-code.jsonl'));
  for (const [name, size, keys] of SHOTS) {
    const page = await open(url, size);
    await page.press(...keys);
    await page.evaluate(() => document.activeElement.blur());
    await page.frame();
    const path = join(pictures, `${name}.png`);
    await page.screenshot({ path });
    assert.ok(statSync(path).size > 10_000, name);
    await page.close();
  }
});
