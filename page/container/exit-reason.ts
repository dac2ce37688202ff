import { sizeText } from '../parts/texts.ts';

type Health = Readonly<{ Status: string; FailingStreak: number; Log: readonly Readonly<{ Output: string }>[] }>;
export type StateOfRun = Readonly<{
  Status: string;
  OOMKilled: boolean;
  ExitCode: number;
  Error: string;
  Health?: Health | undefined;
}>;
type Limits = Readonly<{ memoryBytes: number; restartCount: number }>;

/** Exit codes above 128 are 128 and the signal. */
const SIGNALS: ReadonlyMap<number, string> = new Map([
  [1, 'SIGHUP ended it: its terminal was closed.'],
  [2, 'SIGINT ended it, as Ctrl-C does.'],
  [3, 'SIGQUIT ended it.'],
  [4, 'It crashed: an instruction that this CPU does not know (SIGILL). Is the image for this architecture?'],
  [6, 'It ended itself after an error of its own (SIGABRT).'],
  [7, 'It crashed: access to memory that is not there (SIGBUS).'],
  [8, 'It crashed: an impossible calculation (SIGFPE).'],
  [9, 'SIGKILL ended it: it was killed, or it did not end in time after it was asked to stop.'],
  [11, 'It crashed: access to memory that is not its own (SIGSEGV).'],
  [13, 'It wrote to a closed connection (SIGPIPE).'],
  [15, 'SIGTERM ended it: it was asked to stop.'],
  [24, 'It used all the CPU time that it may (SIGXCPU).'],
  [31, 'It made a forbidden system call (SIGSYS).'],
]);

/** The state in plain words: for a container that ended the reason of it. */
export function exitReason(state: StateOfRun, { memoryBytes, restartCount }: Limits): string {
  const again = restartCount > 0 ? ` It was restarted ${restartCount === 1 ? 'once' : `${restartCount} times`}.` : '';
  return `${reasonOf(state, memoryBytes)}${again}`;
}

function reasonOf({ Status, OOMKilled, ExitCode, Error: failure, Health }: StateOfRun, memoryBytes: number): string {
  switch (Status) {
    case 'created':
      return failure === '' ? 'It was never started.' : `It could not be started: ${failure}`;
    case 'paused':
      return 'It is paused: its processes are frozen.';
    case 'removing':
      return 'It is being removed.';
    case 'dead':
      return 'It could not be removed completely.';
    case 'running':
      return runningText(Health);
  }
  if (OOMKilled) {
    const limit = memoryBytes > 0 ? `its limit of ${sizeText(memoryBytes)}` : 'what the machine has';
    return `The kernel killed it, because it needed more memory than ${limit}.`;
  }
  if (failure !== '') return `It could not be started: ${failure}`;
  return codeText(ExitCode);
}

function runningText(health: Health | undefined): string {
  if (health?.Status !== 'unhealthy') {
    return health?.Status === 'starting' ? 'It runs; its health is not known yet.' : 'It runs.';
  }
  const last = health.Log.at(-1)?.Output.trim() ?? '';
  return `It runs, but its last ${health.FailingStreak} health checks failed${last === '' ? '.' : `: ${last}`}`;
}

function codeText(code: number): string {
  const signal = SIGNALS.get(code - 128);
  if (signal !== undefined) return `${signal} (exit code ${code})`;
  if (code === 0) return 'It ended by itself, without an error (exit code 0).';
  if (code === 126) return 'Its command is there, but cannot be executed (exit code 126).';
  if (code === 127) return 'Its command, or one that it ran, was not found (exit code 127).';
  if (code > 128 && code < 193) return `Signal ${code - 128} ended it (exit code ${code}).`;
  return `It ended by itself with an error (exit code ${code}). Its last lines may tell why.`;
}
