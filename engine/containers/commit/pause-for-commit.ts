import type { Engine } from '../../engine.ts';
import { pauseContainer, unpauseContainer, type PauseNeeds } from '../lifecycle/pause.ts';

export type PauseForCommitNeeds = PauseNeeds & Pick<Engine, 'runs'>;

/**
 * Pauses a running container until it is disposed, as a user's pause would: in its record, with its events, and the
 * next daemon takes it back if this one is killed. Commits at the same time share one pause. A container that is not
 * running or is paused needs none, and one that a user has resumed, stopped or restarted meanwhile stays as it is.
 */
export function pauseForCommit(engine: PauseForCommitNeeds, id: string): Disposable {
  const run = engine.runs.of(id);
  const state = engine.containers.get(id)?.state;
  if (state?.status === 'running') pauseContainer(engine, id, 'commit');
  else if (state?.status !== 'paused' || state.pausedFor !== 'commit') return NOTHING;
  run.commits += 1;
  return {
    [Symbol.dispose]: () => {
      run.commits -= 1;
      if (run.commits > 0) return;
      const now = engine.containers.get(id)?.state;
      if (now?.status === 'paused' && now.pausedFor === 'commit') unpauseContainer(engine, id);
    },
  };
}

const NOTHING: Disposable = { [Symbol.dispose]: () => undefined };
