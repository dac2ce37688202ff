import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Kills all processes of the machine that `pid` runs on: those of its UTS namespace and their descendants, until there are
 * none. The machine must have a UTS namespace of its own.
 */
export async function killMachine(pid: number): Promise<void> {
  const machine = utsNamespace(pid);
  if (machine === undefined || machine === utsNamespace(process.pid)) throw new Error(`${pid} is on no other machine`);
  for (let found = processesOf(machine); found.length > 0; found = processesOf(machine)) {
    for (const one of found) kill(one);
    await sleep(10);
  }
}

/** Without those that have ended and wait for their parent. */
function processesOf(machine: string): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map<number, number>();
  for (const pid of all.map(Number)) {
    const parent = livingParent(pid);
    if (parent !== undefined) parents.set(pid, parent);
  }
  const found = new Set([...parents.keys()].filter((pid) => utsNamespace(pid) === machine));
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

/** The parent of a process that lives. */
function livingParent(pid: number): number | undefined {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (stat === undefined) return undefined;
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' || state === 'X' ? undefined : Number(parent);
}

function utsNamespace(pid: number): string | undefined {
  return read(() => readlinkSync(`/proc/${pid}/ns/uts`));
}

/** Undefined when the process has ended, or is none that root here may look into: no machine of ours. */
function read(look: () => string): string | undefined {
  try {
    return look();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (['ENOENT', 'ESRCH', 'EACCES'].includes(code)) return undefined;
    throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
