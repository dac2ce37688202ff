/**
 * The job of the machine, in it: the demo and test files, one after another, by the words in `vm-job`. Their output
 * goes straight to the console, so that it is seen also when the machine is cut off; the host counts by the marks.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { findLeftovers } from '../leftovers.ts';
import { runTestFiles } from '../test-files.ts';
import { DEMO, mark, type Result } from './marks.ts';

type Counts = Pick<Result, 'passed' | 'failed'>;

/** Long enough that only a hanging file meets it. */
const FILE_MS = 3_600_000;
/** The interval of signs of life during a silent test; the host ends a silent machine. */
const ALIVE_MS = 60_000;

const root = dirname(dirname(import.meta.dirname));
const words = readFileSync(join(root, 'vm-job'), 'utf8').split('\n').slice(0, -1);
const places = words.filter((word) => word !== DEMO && !word.includes('='));
for (const [name, value] of words.filter((word) => word.includes('=')).map((word) => word.split('=', 2)))
  process.env[name!] = value;

const parts = new Set([...(words.includes(DEMO) ? [DEMO] : []), ...places.flatMap(filesOf)]);
for (const part of parts) console.log(mark({ planned: part }));
const alive = setInterval(() => console.log(mark('alive')), ALIVE_MS);
for (const part of parts) {
  console.log(`\n${part}`);
  const started = performance.now();
  const result = await (part === DEMO ? runDemo() : runFile(part));
  console.log(mark({ part, ...result, seconds: Math.round((performance.now() - started) / 1000) }));
}
clearInterval(alive);

function filesOf(place: string): string[] {
  const files = globSync('{template,engine,client,cli,limiter,gateway,tests,tools,bench}/**/*.test.ts', { cwd: root });
  const found = files.filter((file) => file.startsWith(place)).toSorted();
  return found.length === 0 ? [place] : found; // fails like a missing file
}

async function runDemo(): Promise<Counts> {
  const demo = spawn('./gantry', ['demo'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(demo, 'exit')) as [number | null];
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

async function runFile(file: string): Promise<Counts> {
  const options = { atOnce: 1, stallMs: FILE_MS, wholeMs: FILE_MS, leftovers: findLeftovers };
  const { passed, failed, skipped, told } = await runTestFiles(root, [file], options);
  for (const line of told) console.log(line);
  return { passed, failed: failed + skipped + (passed + failed + skipped === 0 ? 1 : 0) };
}
