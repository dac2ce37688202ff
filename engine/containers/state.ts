import { EngineError } from '../lib/errors.ts';

/** A container that never ran. A start that failed leaves its code here. */
export type Idle = { status: 'created'; exitCode: number };

/** A container whose last run is over. */
export type Exited = {
  status: 'exited';
  exitCode: number;
  startedAt: Temporal.Instant;
  finishedAt: Temporal.Instant;
};

/** Between two runs: the restart policy starts it again after its delay. */
export type Restarting = Omit<Exited, 'status'> & { status: 'restarting' };

/** Claimed by a start; `from` is what it goes back to when the start fails. */
export type Starting = { status: 'starting'; from: Idle | Exited | Restarting };

/** There is a process. `stopping`: someone has asked for its end and waits. */
export type Alive = {
  status: 'running' | 'paused' | 'stopping';
  pid: number;
  startedAt: Temporal.Instant;
};

/** Claimed by a removal, which from here on only goes forward. */
export type Removing = { status: 'removing'; exitCode: number };

export type ContainerState = Idle | Starting | Alive | Restarting | Exited | Removing;
export type Status = ContainerState['status'];

const next: Record<Status, readonly Status[]> = {
  created: ['starting', 'removing'],
  starting: ['running', 'created', 'exited', 'restarting'],
  running: ['paused', 'stopping', 'exited'],
  paused: ['running', 'stopping', 'exited'],
  stopping: ['exited'],
  restarting: ['starting', 'exited'],
  exited: ['starting', 'restarting', 'removing'],
  removing: [],
};

/** Throws when a state that was read is none of ours. */
export function checkStatus({ status }: { status: string }): void {
  if (!Object.hasOwn(next, status)) throw new TypeError(`there is no state ${JSON.stringify(status)}`);
}

/** Whether a container may go from one state to the other. */
export function allowed(from: Status, to: Status): boolean {
  return next[from].includes(to);
}

/** The new state, or a conflict when there is no such step. */
export function transition<S extends ContainerState>(from: ContainerState, to: S): S {
  if (!allowed(from.status, to.status)) {
    throw new EngineError('conflict', `a container that is ${from.status} cannot become ${to.status}`);
  }
  return to;
}

/** Whether the container has a process. */
export function isAlive(state: ContainerState): state is Alive {
  return state.status === 'running' || state.status === 'paused' || state.status === 'stopping';
}

/** The exit code to show: that of the last run, 0 while it runs or before it ever ran. */
export function exitCodeOf(state: ContainerState): number {
  switch (state.status) {
    case 'created':
    case 'exited':
    case 'restarting':
    case 'removing':
      return state.exitCode;
    case 'starting':
      return exitCodeOf(state.from);
    case 'running':
    case 'paused':
    case 'stopping':
      return 0;
  }
}
