/**
 * `./gantry bench soak [CYCLES]`: many whole lives of containers, four at a time, and what the daemon holds meanwhile.
 *
 * A cycle is create, start, exec, logs, stop, remove. The default is what dockerd 20.10 does in about an hour on two
 * cores. What is flat has the same figure after a tenth of the cycles and at the end; anything else leaks.
 */
import { globSync, readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const CYCLES = 10_000;
const AT_A_TIME = 4;
const SAMPLES = 10;
/** Memory is not given back to the byte: V8 collects when it likes. */
const MEMORY_SLACK_MB = 30;

type Sample = { cycles: number; seconds: number } & Held;
type Held = {
  memoryMb: number;
  descriptors: number;
  mounts: number;
  cgroups: number;
  processes: number;
  files: number;
  databaseMb: number;
};

export async function main(only?: string): Promise<void> {
  const cycles = Number(only ?? CYCLES);
  if (!Number.isSafeInteger(cycles) || cycles < SAMPLES) throw new Error(`'${only}' is no number of cycles`);
  const parent = `/gantry-soak-${process.pid}`;
  await using engine = await TestEngine.start();
  const started = performance.now();
  const samples: Sample[] = [];
  let begun = 0;
  let done = 0;
  print(['cycles', 'seconds', 'RSS MB', 'descriptors', 'mounts', 'cgroups', 'processes', 'files', 'database MB']);
  const sample = async (): Promise<void> => {
    const seconds = Math.round((performance.now() - started) / 1000);
    samples.push({ cycles: done, seconds, ...(await held(engine, parent)) });
    print(Object.values(samples.at(-1)!));
  };
  for (let part = 1; part <= SAMPLES; part += 1) {
    const until = Math.round((cycles * part) / SAMPLES);
    const client = async (): Promise<void> => {
      while (begun < until) {
        begun += 1;
        try {
          await cycle(engine, parent);
        } catch (error) {
          begun = until; // the others end too, so that nothing is left
          throw error;
        }
        done += 1;
      }
    };
    const clients = await Promise.allSettled(Array.from({ length: AT_A_TIME }, client));
    for (const outcome of clients) if (outcome.status === 'rejected') throw outcome.reason;
    await sample();
  }
  const grown = growthOf(samples[0]!, samples.at(-1)!);
  console.log(grown.length === 0 ? '\nflat: met' : `\nNOT MET, these have grown: ${grown.join(', ')}`);
  if (grown.length > 0) process.exitCode = 1;
}

async function cycle(engine: TestEngine, CgroupParent: string): Promise<void> {
  const id = await engine.run(['sh', '-c', 'echo begun; trap "exit 0" TERM; while :; do sleep 1000 & wait; done'], {
    HostConfig: { CgroupParent, Binds: ['/data'] },
  });
  const created = await engine.post<{ Id: string }>(`/containers/${id}/exec`, {
    Cmd: ['echo', 'x'],
    AttachStdout: true,
  });
  const { raw } = await engine.post(`/exec/${created.body.Id}/start`, { Detach: false, Tty: false });
  if (!raw.toString().endsWith('x\n')) throw new Error(`exec answered ${raw.toString()}`);
  const stdout = await logOf(engine, id);
  if (stdout !== 'begun\n') throw new Error(`the log is ${JSON.stringify(stdout)}`);
  for (const [method, path, status] of [
    ['POST', `/containers/${id}/stop?t=1`, 204],
    ['DELETE', `/containers/${id}?v=1`, 204],
  ] as const) {
    const answer = await engine.request(method, path);
    if (answer.status !== status)
      throw new Error(`${method} ${path} answered ${answer.status}: ${answer.raw.toString()}`);
  }
}

/** The log, when something is in it: the container runs, but may have written nothing yet. */
async function logOf(engine: TestEngine, id: string): Promise<string> {
  const end = performance.now() + 60_000;
  for (;;) {
    const { stdout } = await engine.output(id);
    if (stdout !== '' || performance.now() > end) return stdout;
    await sleep(5);
  }
}

/** After what the daemon does behind its answers has come to its end. */
async function held(engine: TestEngine, parent: string): Promise<Held> {
  const cgroups = (): number => globSync([`/sys/fs/cgroup${parent}/*/`, `/sys/fs/cgroup/*${parent}/*/`]).length;
  for (let waits = 0; beingRemoved(engine).length + cgroups() > 0; waits += 1) {
    if (waits > 1200) throw new Error(`not removed after 30 seconds: ${beingRemoved(engine).join(', ')}`);
    await sleep(25);
  }
  const ours = `/proc/${engine.pid}`;
  return {
    memoryMb: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`${ours}/status`, 'utf8'))?.[1]) / 1024),
    descriptors: readdirSync(`${ours}/fd`).length,
    // Others' come and go in the same namespace.
    mounts: textOf(`${ours}/mountinfo`)
      .split('\n')
      .filter((line) => line.includes(engine.directory)).length,
    cgroups: cgroups(),
    processes: globSync('/proc/[0-9]*/cmdline').filter((path) => textOf(path).includes(engine.directory)).length,
    files: globSync(`${engine.directory}/{data,exec}/**`).length,
    databaseMb: Math.round(readFileSync(`${engine.dataRoot}/gantry.db`).length / 1e6),
  };
}

/** The remains of containers at the moment: between two parts of the soak there are none. */
function beingRemoved({ directory }: TestEngine): string[] {
  return globSync([
    `${directory}/exec/shims/*`,
    `${directory}/data/containers/*`,
    `${directory}/data/writable/*`, // without `.trash`, which begins with a dot
    `${directory}/data/{writable,volumes}/.trash/*`,
  ]);
}

function growthOf(first: Held, last: Held): string[] {
  const kinds = ['descriptors', 'mounts', 'cgroups', 'processes', 'files'] as const;
  const grown: string[] = kinds.filter((kind) => last[kind] > first[kind] + 4);
  if (last.memoryMb > first.memoryMb + MEMORY_SLACK_MB) grown.push('memoryMb');
  return grown;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it ended after it was listed
  }
}

function print(cells: readonly (string | number)[]): void {
  console.log(cells.map((cell) => String(cell).padStart(11)).join(' '));
}
