import type { Engine } from '../engine.ts';
import type { ImageUsage } from '../images/usage.ts';
import type { SandboxOwners } from '../networks/parts.ts';
import type { VolumeUsage } from '../volumes/remove.ts';
import { HealthStore } from './health/store.ts';
import { holderOf, currentRegistrations } from './networks/registrations.ts';
import { volumeUsers } from './queries/list.ts';
import { MemoryFiles } from './runs/preparation/memory-files.ts';
import { Runs } from './runs/runs.ts';
import { isAlive } from './state.ts';
import { Samplers } from './stats/samplers.ts';
import { UsageHistory } from './stats/usage-history.ts';
import { ContainerStore, type Container } from './store.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'db'>;
type ContainerParts = {
  containers: ContainerStore;
  healthStore: HealthStore;
  runs: Runs;
  samplers: Samplers;
  usageHistory: UsageHistory;
  memoryFiles: MemoryFiles;
  imageUsage: ImageUsage;
  volumeUsage: VolumeUsage;
};
/** The parts, and the functions that networks need. */
type Built = { parts: ContainerParts; sandboxOwners: SandboxOwners };

function mountsImage({ mounts }: Container, imageId: string): boolean {
  return mounts.some((mount) => mount.imageId === imageId);
}

/** The parts that this domain adds to the engine. */
export function containerParts({ background, clock, db }: Needs): Built {
  const containers = new ContainerStore(db);
  const imageUsage: ImageUsage = {
    usedBy: (imageId) =>
      containers
        .all()
        .filter((container) => container.imageId === imageId || mountsImage(container, imageId))
        .map((container) => ({
          id: container.id,
          // Unlike the root's, the layers of a mounted image go with it.
          running: isAlive(container.state) || mountsImage(container, imageId),
        })),
    counts: () => {
      const counts = new Map<string, number>();
      for (const { imageId, mounts } of containers.all()) {
        const used = new Set([imageId, ...mounts.map((mount) => mount.imageId)]);
        for (const id of used) if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      return counts;
    },
  };
  const volumeUsage: VolumeUsage = {
    usersOf: (volume) => volumeUsers(containers, volume),
    runningUsersOf: (volume) =>
      volumeUsers(containers, volume).filter((id) => {
        const state = containers.get(id)?.state;
        return state !== undefined && (isAlive(state) || state.status === 'starting');
      }),
    isIncomplete: () => containers.idsSetAside().length > 0,
  };
  const sandboxOwners: SandboxOwners = {
    nameOf: (id) => containers.get(id)?.name,
    netnsOf: (id) => {
      const state = containers.get(id)?.state;
      return state !== undefined && isAlive(state) ? holderOf(state.pid).netns : undefined;
    },
    served: (config, networks) => currentRegistrations({ config, containers, networks }),
    isAnyAlive: () => containers.all().some(({ state }) => isAlive(state) || state.status === 'starting'),
  };
  const runs = new Runs({ clock, containers });
  const samplers = new Samplers({ clock, containers });
  const usageHistory = new UsageHistory({ background, clock, containers, samplers });
  const healthStore = new HealthStore(db);
  healthStore.keepOnly(containers.ids());
  return {
    parts: {
      containers,
      healthStore,
      memoryFiles: new MemoryFiles(),
      runs,
      samplers,
      usageHistory,
      imageUsage,
      volumeUsage,
    },
    sandboxOwners,
  };
}
