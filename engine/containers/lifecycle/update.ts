import type { Engine } from '../../engine.ts';
import { LimitRefused } from '../../host/cgroups/cgroup-limits.ts';
import { detectCgroups } from '../../host/cgroups/cgroups.ts';
import { limitSupport } from '../../host/cgroups/limit-support.ts';
import { EngineError } from '../../lib/errors.ts';
import { emitContainer } from '../container-events.ts';
import { refuseUnclear } from '../runs/find-alive.ts';
import { changeLiveLimits } from '../runs/live-limits.ts';
import { checkedUpdate, updatedHostConfig, type WantedUpdate } from '../settings/update.ts';
import type { Container } from '../store.ts';

type Needs = Pick<Engine, 'containers' | 'events' | 'locks' | 'runs'>;

/**
 * Changes limits and restart policy, of the running container and of its record: both or neither. Returns warnings.
 * Specification, endpoint 14.
 */
export async function updateContainer(engine: Needs, ref: string, wanted: WantedUpdate): Promise<string[]> {
  const { containers, events } = engine;
  const { id } = containers.find(ref);
  const { update, warnings } = checkedUpdate(wanted, limitSupport(detectCgroups()));
  using _lock = await engine.locks.hold(id); // no start in between would miss it
  const container = containers.find(id);
  refuseUnclear(engine, container);
  const hostConfig = prefixed(id, () => updatedHostConfig(container.hostConfig, update));
  await using live = await changeLiveLimits(engine, container, hostConfig).catch((error: unknown) => {
    if (!(error instanceof LimitRefused)) throw error;
    throw new EngineError('failed', `Cannot update container ${id}: ${error.message}`, { cause: error });
  });
  containers.together(() => {
    const updated = containers.change(id, ({ limitWrites: _written, unitWords: _told, ...current }): Container => ({
      ...current,
      hostConfig,
    }));
    emitContainer(events, 'update', updated);
  });
  live.keep();
  return warnings;
}

function prefixed<T>(id: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
    throw new EngineError('conflict', `Cannot update container ${id}: ${error.message}`, { cause: error });
  }
}
