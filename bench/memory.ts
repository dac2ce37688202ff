import { globSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import type { Row } from './measure.ts';
import type { Subject } from './subject.ts';

const IDLE_BUDGET_MB = 100;
const AFTER_WORK_BUDGET_MB = 120;
const MINUTE = 60_000;

export const AFTER_WORK = 'daemon, a minute after loads and attaches, RSS';

/** RSS without any container: dockerd with its containerd. The ratio is to the budget. */
export function idleMemory(ourPid: number, dockerdPid: number): Row {
  return residentRow('daemon, idle, RSS', ourPid, dockerdPid, IDLE_BUDGET_MB);
}

/** Memory of both after much work. */
export async function memoryAfterWork(
  ours: { subject: Subject; pid: number },
  theirs: { subject: Subject; pid: number },
): Promise<Row> {
  for (const { subject } of [ours, theirs]) {
    for (const kind of ['large', 'medium', 'small', 'large'] as const) {
      await subject.load(kind);
      await subject.save(kind);
    }
    for (let round = 0; round < 3; round += 1) await subject.attach('zeros');
  }
  await setTimeout(MINUTE);
  return residentRow(AFTER_WORK, ours.pid, theirs.pid, AFTER_WORK_BUDGET_MB);
}

function residentRow(name: string, ourPid: number, dockerdPid: number, budgetMb: number): Row {
  const ours = residentMb(ourPid);
  const theirs = residentMb(dockerdPid) + childrenOf(dockerdPid).reduce((sum, pid) => sum + residentMb(pid), 0);
  return { name, unit: 'MB', ours, theirs, ratio: ours / budgetMb, atMost: 1 };
}

/** PSS of the process that watches one running container. */
export async function monitorMemory(ours: Subject, theirs: Subject): Promise<Row> {
  await using _mine = await ours.sleeping();
  await using _other = await theirs.sleeping();
  const [mine, other] = [pssMb(/gantry-shim/), pssMb(/containerd-shim/)];
  return {
    name: 'monitor of a container, PSS',
    unit: 'MB',
    ours: mine,
    theirs: other,
    ratio: mine / other,
    atMost: 0.1,
  };
}

function residentMb(pid: number): number {
  return kilobytes(`/proc/${pid}/status`, /^VmRSS:\s+(\d+)/m) / 1024;
}

function pssMb(program: RegExp): number {
  const figures = globSync('/proc/[0-9]*')
    .filter((path) => program.test(commandOf(path)))
    .map((path) => kilobytes(`${path}/smaps_rollup`, /^Pss:\s+(\d+)/m) / 1024);
  if (figures.length === 0) throw new Error(`no process matches ${program}`);
  return figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
}

function kilobytes(path: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(path, 'utf8'))?.[1]);
}

export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}

function commandOf(path: string): string {
  try {
    return readFileSync(`${path}/cmdline`, 'utf8');
  } catch {
    return ''; // it ended after it was listed
  }
}
