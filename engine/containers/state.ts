import { Type, type Static } from 'typebox';

import { Instant } from '../db/decode.ts';
import { EngineError } from '../lib/errors.ts';

const ofAnEnd = { exitCode: Type.Integer(), startedAt: Instant, finishedAt: Instant };

/** A container that never ran. A failed start stores its code here. */
const Idle = Type.Object({ status: Type.Literal('created'), exitCode: Type.Integer() });

/** A container whose last run is over. */
const Exited = Type.Object({ status: Type.Literal('exited'), ...ofAnEnd });

/** Between two runs: the restart policy starts it again after its delay. */
const Restarting = Type.Object({ status: Type.Literal('restarting'), ...ofAnEnd });

/** Claimed by a start; `from` is the state after a failed start. */
const Starting = Type.Object({
  status: Type.Literal('starting'),
  from: Type.Union([Idle, Exited, Restarting]),
});

/** There is a process. `stopping`: a stop waits for its end. */
const Alive = Type.Object({
  status: Type.Union([Type.Literal('running'), Type.Literal('paused'), Type.Literal('stopping')]),
  pid: Type.Integer(),
  startedAt: Instant,
  /** A pause for work of the engine, which ends with the work; the next daemon ends it if this one is killed. */
  pausedFor: Type.Optional(Type.Literal('commit')),
});

/** Claimed by a removal, which cannot be undone. */
const Removing = Type.Object({ status: Type.Literal('removing'), exitCode: Type.Integer() });

export const ContainerState = Type.Union([Idle, Starting, Alive, Restarting, Exited, Removing]);
export type ContainerState = Static<typeof ContainerState>;
export type Alive = Static<typeof Alive>;
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

/** Whether a container may go from one state to the other. */
export function isAllowedStep(from: Status, to: Status): boolean {
  return next[from].includes(to);
}

/** The new state. Throws `conflict` if the change is not allowed. */
export function transition<S extends ContainerState>(from: ContainerState, to: S): S {
  if (!isAllowedStep(from.status, to.status)) {
    throw new EngineError('conflict', `a container that is ${from.status} cannot become ${to.status}`);
  }
  return to;
}

/** Whether the container has a process. */
export function isAlive(state: ContainerState): state is Alive {
  return state.status === 'running' || state.status === 'paused' || state.status === 'stopping';
}

/** Whether it does not run, and will not be restarted by its policy. */
export function isOver({ status }: ContainerState): boolean {
  return status === 'created' || status === 'exited' || status === 'removing';
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
