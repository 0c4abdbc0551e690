// Builds dist/page.html: one file with its style and its script inside, and a policy that names their hashes.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const bundled = async (path) => {
  const made = await build({
    entryPoints: [at(path)],
    bundle: true,
    write: false,
    minify: true,
    format: 'iife',
    target: ['chrome115', 'firefox115', 'safari16'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'none',
  });
  return made.outputFiles[0].text.trim();
};
const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const style = await bundled('src/style.css');
// Neither may end its element or look like another one: a text of the page is found by these.
const script = (await bundled('src/main.tsx')).replaceAll('</', '<\\/').replaceAll('<script', '<\\script').replaceAll('<!--', '<\\!--');
const parts = { style, script, 'hash of style': hash(style), 'hash of script': hash(script) };
const document = await readFile(at('src/page.html'), 'utf8');
const page = document.replace(/\{\{([a-z ]+)\}\}/g, (_, name) => parts[name]);
await mkdir(at('dist'), { recursive: true });
await writeFile(at('dist/page.html'), page);
