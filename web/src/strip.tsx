// All steps as one strip: what was sent with the part from the cache, what came back, what it cost, and marks.
// One canvas, however many steps there are; what it says is the value of a slider for those who do not see it.

import { useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { Run } from './data';
import { amount, money, short } from './words';
import { sent, stepSentence } from './words-of';

interface Props {
  run: Run;
  chosen: number;
  /** Steps in which something comes that the search or the selector finds. */
  matched: ReadonlySet<number>;
  /** Steps that have something that the selector finds. */
  has: ReadonlySet<number>;
  choose: (index: number) => void;
}

const HEIGHT = 118;
const FOUND = [112, 118] as const;
type Lane = readonly [top: number, bottom: number];

/** What there is nothing of takes no room. */
function lanesOf(run: Run): { input: Lane; output: Lane | null; cost: Lane | null; cached: boolean } {
  const { steps } = run.data;
  let bottom = 110;
  const lane = (is: boolean): Lane | null => {
    if (!is) return null;
    bottom -= 18;
    return [bottom + 4, bottom + 18];
  };
  const cost = lane(steps.some((step) => step.cost !== undefined));
  const output = lane(steps.some((step) => step.usage[3] !== null));
  return { input: [18, bottom], output, cost, cached: steps.some((step) => step.usage[1] !== null) };
}

export function Strip({ run, chosen, matched, has, choose }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<number | null>(null);
  const lanes = useMemo(() => lanesOf(run), [run]);
  const [drawn, again] = useReducer((n: number, _: null) => n + 1, 0);

  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => {
      const width = Math.round(entry!.contentRect.width * (window.devicePixelRatio || 1));
      if (canvas.current && canvas.current.width !== width) again(null);
    });
    watch.observe(canvas.current!);
    const schemes = ['(prefers-color-scheme: dark)', '(forced-colors: active)'].map((query) => matchMedia(query));
    const redraw = () => again(null);
    for (const scheme of schemes) scheme.addEventListener('change', redraw);
    return () => {
      watch.disconnect();
      for (const scheme of schemes) scheme.removeEventListener('change', redraw);
    };
  }, []);

  useLayoutEffect(() => draw(canvas.current!, run, lanes, chosen, matched, has), [run, chosen, matched, has, drawn]);

  const at = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const index = Math.floor(((event.clientX - box.left) / box.width) * run.length);
    return Math.max(0, Math.min(run.length - 1, index));
  };
  return (
    <section class="strip" aria-label="All steps">
      <canvas
        ref={canvas}
        role="slider"
        tabIndex={0}
        id="strip"
        aria-label="Step"
        aria-valuemin={1}
        aria-valuemax={run.length}
        aria-valuenow={chosen + 1}
        aria-valuetext={stepSentence(run, chosen)}
        style={{ height: HEIGHT + 'px' }}
        onPointerDown={(event) => {
          canvas.current!.setPointerCapture(event.pointerId);
          choose(at(event));
        }}
        onPointerMove={(event) => {
          const index = at(event);
          if (event.buttons & 1) choose(index);
          if (index !== hover) setHover(index);
        }}
        onPointerLeave={() => setHover(null)}
      />
      <div class="legend">
        <p class="hint" aria-hidden="true">
          {stepSentence(run, hover !== null && hover < run.length ? hover : chosen)}
        </p>
        <ul aria-label="Legend">
          <li>
            <i class="key input" />
            tokens in
          </li>
          {lanes.cached && (
            <li>
              <i class="key cached" />
              from the prompt cache
            </li>
          )}
          {lanes.output && (
            <li>
              <i class="key output" />
              out
            </li>
          )}
          {lanes.cost && (
            <li>
              <i class="key cost" />
              cost
            </li>
          )}
          <li>
            <i class="key compaction" />
            compaction
          </li>
          <li>
            <i class="key error" />
            error
          </li>
          <li>
            <i class="key miss" />
            cache miss
          </li>
          <li>
            <i class="key model" />
            new model
          </li>
          {matched.size > 0 && (
            <li>
              <i class="key found" />
              {matched.size} of {run.length} with matches
            </li>
          )}
        </ul>
      </div>
    </section>
  );
}

function draw(canvas: HTMLCanvasElement, run: Run, lanes: ReturnType<typeof lanesOf>, chosen: number, matched: ReadonlySet<number>, has: ReadonlySet<number>) {
  const width = canvas.clientWidth;
  if (width === 0) return;
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(HEIGHT * scale)) canvas.height = Math.round(HEIGHT * scale);
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, HEIGHT);
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue('--' + name).trim();
  const count = run.length;
  const each = width / count;
  const gap = each > 6 ? Math.min(3, each * 0.2) : 0;
  const { steps } = run.data;

  const column = colour('chosen');
  pen.fillStyle = column;
  pen.fillRect(Math.floor(chosen * each), 0, Math.max(2, each), HEIGHT);

  let [mostIn, mostOut, mostCost] = [1, 1, 1];
  for (let at = 0; at < count; at++) {
    mostIn = Math.max(mostIn, sent(run, at));
    mostOut = Math.max(mostOut, steps[at]!.usage[3] ?? 0);
    mostCost = Math.max(mostCost, steps[at]!.cost ?? 0);
  }
  // A column of pixels shows the largest of its steps.
  const bars = (lane: Lane | null, most: number, fill: string, value: (at: number) => number) => {
    if (!lane) return;
    const [top, bottom] = lane;
    pen.fillStyle = fill;
    const place = (at: number) => Math.round(at * each * scale) / scale;
    for (let at = 0; at < count; ) {
      const left = place(at);
      let largest = value(at);
      for (at++; at < count && place(at + 1) - left < 1; at++) largest = Math.max(largest, value(at));
      if (largest <= 0) continue;
      const height = Math.max(1, (largest / most) * (bottom - top));
      pen.fillRect(left + gap / 2, bottom - height, Math.max(1, place(at) - left - gap), height);
    }
  };
  bars(lanes.input, mostIn, colour('input'), (at) => sent(run, at));
  bars(lanes.input, mostIn, colour('cached'), (at) => steps[at]!.usage[1] ?? 0);
  bars(lanes.output, mostOut, colour('output'), (at) => steps[at]!.usage[3] ?? 0);
  bars(lanes.cost, mostCost, colour('cost'), (at) => steps[at]!.cost ?? 0);

  pen.fillStyle = colour('found');
  pen.globalAlpha = 0.35;
  for (const at of has) pen.fillRect(at * each + gap / 2, FOUND[0], Math.max(1, each - gap), FOUND[1] - FOUND[0]);
  pen.globalAlpha = 1;
  for (const at of matched) pen.fillRect(at * each + gap / 2, FOUND[0], Math.max(1.5, each - gap), FOUND[1] - FOUND[0]);

  pen.fillStyle = colour('line');
  for (const lane of [lanes.input, lanes.output, lanes.cost]) if (lane) pen.fillRect(0, lane[1], width, 1);

  // Marks have a shape each: colour is not all that tells them apart.
  const size = 4;
  const middle = (at: number) => Math.min(width - size, Math.max(size, (at + 0.5) * each));
  const shapes: [keyof Run['marks'][number], (x: number) => void][] = [
    ['model', (x) => path(pen, [[x, 3], [x + 4, 7], [x, 11], [x - 4, 7]])],
    ['compaction', (x) => path(pen, [[x - 4, 3], [x + 4, 3], [x, 11]])],
    ['miss', (x) => path(pen, [[x, 3], [x + 4, 11], [x - 4, 11]])],
    [
      'error',
      (x) => {
        pen.beginPath();
        pen.arc(x, 7, 4, 0, 2 * Math.PI);
        pen.fill();
      },
    ],
  ];
  run.marks.forEach((marks, at) => {
    const there = shapes.filter(([name]) => marks[name]);
    there.forEach(([name, shape], number) => {
      pen.fillStyle = colour(name === 'model' ? 'model' : name);
      const shift = (number - (there.length - 1) / 2) * Math.min(9, Math.max(each / there.length, 3));
      shape(middle(at) + shift);
    });
  });

  pen.fillStyle = colour('quiet');
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'top';
  const label = (text: string, y: number) => {
    const wide = pen.measureText(text).width;
    pen.fillStyle = colour('veil');
    pen.fillRect(0, y, wide + 6, 12);
    pen.fillStyle = colour('quiet');
    pen.fillText(text, 3, y + 1);
  };
  label(short(mostIn) + ' in', lanes.input[0] - 1);
  if (lanes.output) label(amount(mostOut) + ' out', lanes.output[0]);
  if (lanes.cost) label(money(mostCost), lanes.cost[0]);

  pen.strokeStyle = colour('accent');
  pen.lineWidth = 2;
  pen.strokeRect(Math.floor(chosen * each) + 1, 1, Math.max(2, each - 2), HEIGHT - 2);
}

function path(pen: CanvasRenderingContext2D, points: [number, number][]) {
  pen.beginPath();
  points.forEach(([x, y], at) => (at === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y)));
  pen.fill();
}
