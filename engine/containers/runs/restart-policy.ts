import type { Database } from '../../db/database.ts';
import type { Engine } from '../../engine.ts';
import { transition } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';

type Needs = Pick<Engine, 'runs'> & { containers: Pick<ContainerStore, 'change'>; db: Pick<Database, 'afterCommit'> };

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 60_000;
/** A run of this length was a success: the delay starts over. */
const STEADY_SECONDS = 10;

/**
 * Called in the transaction that stores the end of a run, or that a start by the policy has failed: decides whether
 * another run follows, which is counted at once, and begins after twice the last delay.
 */
export function applyRestartPolicy(engine: Needs, container: Container, { ran }: { ran: boolean }): void {
  const { id, state } = container;
  const run = engine.runs.of(id);
  if (engine.runs.areLast) return;
  if (state.status !== 'exited' || !wantsRestart(container, state.exitCode)) {
    engine.db.afterCommit(() => (run.restartDelayMs = undefined));
    return;
  }
  const ranSeconds = ran ? state.startedAt.until(state.finishedAt).total('seconds') : 0;
  engine.containers.change(id, (current) => ({
    ...current,
    restartCount: current.restartCount + 1,
    state: transition(state, { ...state, status: 'restarting' }),
  }));
  engine.db.afterCommit(() => restartLater(engine, id, { isSteady: ranSeconds >= STEADY_SECONDS }));
}

/** Arms the next start. */
export function restartLater({ runs }: Pick<Needs, 'runs'>, id: string, { isSteady = false } = {}): void {
  const run = runs.of(id);
  const before = isSteady ? undefined : run.restartDelayMs;
  run.restartIn(before === undefined ? FIRST_DELAY_MS : Math.min(before * 2, MAX_DELAY_MS));
}

function wantsRestart({ hostConfig, stoppedByUser, restartCount }: Container, exitCode: number): boolean {
  const { Name, MaximumRetryCount } = hostConfig.RestartPolicy;
  if (stoppedByUser) return false;
  if (Name === 'always' || Name === 'unless-stopped') return true;
  return Name === 'on-failure' && exitCode !== 0 && (MaximumRetryCount === 0 || restartCount < MaximumRetryCount);
}

/** Whether an ended container starts with the daemon; with `unless-stopped` not if a user has stopped it. */
export function startsWithDaemon({ state, hostConfig, stoppedByUser }: Container): boolean {
  const { Name } = hostConfig.RestartPolicy;
  if (state.status === 'restarting') return true;
  return state.status === 'exited' && (Name === 'always' || (Name === 'unless-stopped' && !stoppedByUser));
}
