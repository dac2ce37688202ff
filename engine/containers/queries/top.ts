import { execFile } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { promisify } from 'node:util';

import type { Engine } from '../../engine.ts';
import { detectCgroups, processesIn } from '../../host/cgroups/cgroups.ts';
import { isRootless } from '../../host/rootless.ts';
import { EngineError } from '../../lib/errors.ts';
import { emitIfThere } from '../container-events.ts';
import { findAlive } from '../runs/find-alive.ts';
import { cgroupPathOf } from '../runs/places.ts';
import type { Top } from '../schema.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';

type Needs = Pick<Engine, 'containers' | 'events' | 'runs'>;

const execute = promisify(execFile);
const MAX_OUTPUT = 64 * 1024 * 1024;

/** The output of the host's `ps` for the container's processes. Throws `conflict` if it is not running. */
export async function topContainer(engine: Needs, ref: string, psArguments = '-ef'): Promise<Top> {
  const { container } = findAlive(engine, ref);
  refuseForeignPids(psArguments);
  const words = psArguments.split(/\s+/).filter((word) => word !== '');
  const pids = new Set(isRootless ? processesLike(container) : processesIn(detectCgroups(), cgroupPathOf(container)));
  const top = chooseProcesses(await ps(words.length === 0 ? ['-ef'] : words, pids), pids);
  emitIfThere(engine, 'top', container.id);
  return top;
}

/** Without cgroups: the processes in its mount namespace, which each container has for itself. */
function processesLike({ state }: Container): number[] {
  if (!isAlive(state)) return [];
  const own = namespaceOf(state.pid);
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter((one) => own !== undefined && namespaceOf(one) === own).map(Number);
}

function namespaceOf(pid: number | string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    return undefined; // it has ended, or is another user's
  }
}

/** The lines of these processes; the last column keeps its spaces, which are those of a command. */
export function chooseProcesses(output: string, pids: ReadonlySet<number>): Top {
  const [head = '', ...lines] = output.split('\n').filter((line) => line.trim() !== '');
  const titles = head.trim().split(/\s+/);
  const column = titles.indexOf('PID');
  if (column < 0) throw new EngineError('failed', "Couldn't find PID field in ps output");
  const rows = lines.map((line) => columnsOf(line, titles.length)).filter((row) => pids.has(Number(row[column])));
  return { Titles: titles, Processes: rows };
}

function columnsOf(line: string, count: number): string[] {
  const words = line.trim().split(/\s+/);
  return [...words.slice(0, count - 1), words.slice(count - 1).join(' ')];
}

/** Another column under this title would choose processes of the host. */
function refuseForeignPids(psArguments: string): void {
  for (const [, column = '', title = ''] of psArguments.matchAll(/\s(\S*)=\s*(PID\S*)/g)) {
    if (column !== 'pid') throw new EngineError('failed', `specifying "${column}=${title}" is not allowed`);
  }
}

/** Some options, such as `f`, exclude a selection of processes; others, such as `ww`, need one. */
async function ps(words: readonly string[], pids: ReadonlySet<number>): Promise<string> {
  try {
    return await output([...words, `-q${[...pids].join(',')}`]);
  } catch {
    return await output(words);
  }
}

async function output(words: readonly string[]): Promise<string> {
  try {
    const { stdout } = await execute('ps', words, { maxBuffer: MAX_OUTPUT });
    return stdout;
  } catch (error) {
    throw new EngineError('failed', `ps: ${reasonOf(error)}`, { cause: error });
  }
}

/** The first line of its output; some failures have only a code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error) || !('stderr' in error) || !('code' in error)) return String(error);
  const [line = ''] = String(error.stderr).split('\n', 1);
  return line.trim() || `exit status ${String(error.code)}`;
}
