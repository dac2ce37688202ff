import { listBuildCaches } from '../builder/cache/prune.ts';
import { listContainers } from '../containers/queries/list.ts';
import { isAlive, type ContainerState } from '../containers/state.ts';
import type { Engine } from '../engine.ts';
import { listedSummaries } from '../images/list-summaries.ts';
import { listImages } from '../images/list.ts';
import { presentVolume } from '../volumes/present.ts';
import { isPlainLocal, volumeBytes } from '../volumes/size.ts';
import type { Volume } from '../volumes/store.ts';
import type { DISK_USAGE_KINDS, DiskUsageWire } from './disk-usage-schema.ts';

type Sizes = Readonly<{ writableBytes: number; rootBytes: number }>;
type KeptSizes = Sizes & Readonly<{ state: ContainerState; writes: number }>;
type KeptVolume = Readonly<{ bytes: number; cursor: number; measuredAt: Temporal.Instant }>;

export type DiskUsageKind = (typeof DISK_USAGE_KINDS)[number];
type UsageField = 'ImageUsage' | 'ContainerUsage' | 'VolumeUsage' | 'BuildCacheUsage';
type UsageOf<Field extends UsageField> = NonNullable<DiskUsageWire[Field]>;
type DiskUsages = Pick<DiskUsageWire, UsageField>;

/** Files of a volume may be changed on the machine, without an event. */
const MAX_VOLUME_AGE_SECONDS = 60;

/**
 * The disk usage of all objects. Layers have their sizes in their records. A tree is measured again only if it may have
 * changed: that of a container by its runs and archives, that of a volume while anything happens. Clients at the same
 * time share one look at each kind.
 */
export class DiskUsage {
  readonly #engine: Engine;
  readonly #containers = new Map<string, KeptSizes>();
  readonly #volumes = new Map<string, KeptVolume>();
  readonly #underWay = new Map<DiskUsageKind, Promise<DiskUsages>>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Measures these kinds, and leaves out the others. */
  async measure(kinds: readonly DiskUsageKind[]): Promise<DiskUsages> {
    const usages = await Promise.all(kinds.map(async (kind) => await this.#shared(kind)));
    return Object.assign({}, ...usages) as DiskUsages;
  }

  async #shared(kind: DiskUsageKind): Promise<DiskUsages> {
    let underWay = this.#underWay.get(kind);
    if (underWay === undefined) {
      underWay = this.#measure(kind).finally(() => this.#underWay.delete(kind));
      this.#underWay.set(kind, underWay);
    }
    return await underWay;
  }

  async #measure(kind: DiskUsageKind): Promise<DiskUsages> {
    switch (kind) {
      case 'image':
        return { ImageUsage: await this.#imageUsage() };
      case 'container':
        return { ContainerUsage: await this.#containerUsage() };
      case 'volume':
        return { VolumeUsage: await this.#volumeUsage() };
      case 'build-cache':
        return { BuildCacheUsage: await this.#cacheUsage() };
    }
  }

  async #imageUsage(): Promise<UsageOf<'ImageUsage'>> {
    const items = await this.#images();
    const unused = items.filter(({ Containers }) => Containers === 0);
    return {
      ActiveCount: items.length - unused.length,
      TotalCount: items.length,
      Reclaimable: sum(unused.map(({ Size, SharedSize }) => Size - SharedSize)),
      TotalSize: sum(this.#engine.layers.all().map(({ sizeBytes }) => sizeBytes)),
      Items: items,
    };
  }

  async #containerUsage(): Promise<UsageOf<'ContainerUsage'>> {
    const items = await this.#sizedContainers();
    const idle = items.filter(({ State }) => !['running', 'paused', 'restarting'].includes(State ?? ''));
    return {
      ActiveCount: items.length - idle.length,
      TotalCount: items.length,
      Reclaimable: sum(idle.map(({ SizeRw = 0 }) => SizeRw)),
      TotalSize: sum(items.map(({ SizeRw = 0 }) => SizeRw)),
      Items: items,
    };
  }

  async #volumeUsage(): Promise<UsageOf<'VolumeUsage'>> {
    const items = await this.#sizedVolumes();
    const unused = items.filter(({ UsageData }) => UsageData.RefCount === 0);
    return {
      ActiveCount: items.length - unused.length,
      TotalCount: items.length,
      Reclaimable: sum(unused.map(({ UsageData }) => UsageData.Size)),
      TotalSize: sum(items.map(({ UsageData }) => UsageData.Size)),
      Items: items,
    };
  }

  async #cacheUsage(): Promise<UsageOf<'BuildCacheUsage'>> {
    const caches = await listBuildCaches(this.#engine);
    const items = caches.map(({ id, type, description, bytes, createdAt, usedAt, isUsed }) => ({
      ID: id,
      Parent: '',
      Type: type,
      Description: description,
      InUse: isUsed,
      Shared: false,
      Size: bytes,
      CreatedAt: createdAt.toString(),
      LastUsedAt: usedAt.toString(),
      UsageCount: 0,
    }));
    const unused = items.filter(({ InUse }) => !InUse);
    return {
      ActiveCount: items.length - unused.length,
      TotalCount: items.length,
      Reclaimable: sum(unused.map(({ Size }) => Size)),
      TotalSize: sum(items.map(({ Size }) => Size)),
      Items: items,
    };
  }

  async #images(): Promise<UsageOf<'ImageUsage'>['Items']> {
    const { clock, images } = this.#engine;
    const listed = await listImages({ images, clock }, { all: false, filters: new Map() });
    return listedSummaries(this.#engine, listed, { sharedSizes: true, manifests: false, identity: false });
  }

  /** One after the other, because each may need descriptors and a child process. */
  async #sizedContainers(): Promise<UsageOf<'ContainerUsage'>['Items']> {
    const sized: UsageOf<'ContainerUsage'>['Items'] = [];
    for (const summary of await listContainers(this.#engine, { all: true })) {
      const sizes = await this.#sizesOf(summary.Id);
      if (sizes === undefined) continue;
      sized.push({ ...summary, SizeRw: sizes.writableBytes, SizeRootFs: sizes.rootBytes });
    }
    for (const id of this.#containers.keys())
      if (this.#engine.containers.get(id) === undefined) this.#containers.delete(id);
    return sized;
  }

  /** Undefined for a container that was removed meanwhile. */
  async #sizesOf(id: string): Promise<Sizes | undefined> {
    const { containers, layers, runs } = this.#engine;
    const state = containers.get(id)?.state;
    if (state === undefined) return undefined;
    const { writes } = runs.of(id);
    const kept = this.#containers.get(id);
    if (kept !== undefined && kept.state === state && kept.writes === writes && !isAlive(state)) return kept;
    const sizes = await layers.size(id);
    this.#containers.set(id, { ...sizes, state, writes });
    return sizes;
  }

  async #sizedVolumes(): Promise<UsageOf<'VolumeUsage'>['Items']> {
    const { volumeUsage, volumes } = this.#engine;
    const sized: UsageOf<'VolumeUsage'>['Items'] = [];
    for (const volume of volumes.all().filter(isPlainLocal)) {
      const shown = await presentVolume(this.#engine, volume);
      if (shown === undefined) continue;
      const { Status: _onlyInspected, ...rest } = shown;
      const RefCount = volumeUsage.usersOf(volume.name).length;
      sized.push({ ...rest, UsageData: { RefCount, Size: await this.#bytesOf(volume) } });
    }
    for (const name of this.#volumes.keys()) if (volumes.get(name) === undefined) this.#volumes.delete(name);
    return sized;
  }

  async #bytesOf(volume: Volume): Promise<number> {
    const { clock, events, volumeUsage } = this.#engine;
    const { cursor } = events;
    const measuredAt = clock.now();
    const kept = this.#volumes.get(volume.name);
    const isIdle = volumeUsage.runningUsersOf(volume.name).length === 0;
    const isYoung = kept !== undefined && kept.measuredAt.until(measuredAt).total('seconds') < MAX_VOLUME_AGE_SECONDS;
    if (isYoung && isIdle && kept.cursor === cursor) return kept.bytes;
    const bytes = await volumeBytes(this.#engine, volume);
    this.#volumes.set(volume.name, { bytes, cursor, measuredAt });
    return bytes;
  }
}

/** The lists that stood in the place of the usage objects before 1.52. */
export function listsOf(usages: DiskUsages): Partial<DiskUsageWire> {
  const { ImageUsage, ContainerUsage, VolumeUsage, BuildCacheUsage } = usages;
  return {
    ...(ImageUsage !== undefined && { LayersSize: ImageUsage.TotalSize, Images: ImageUsage.Items }),
    ...(ContainerUsage !== undefined && { Containers: ContainerUsage.Items }),
    ...(VolumeUsage !== undefined && { Volumes: VolumeUsage.Items }),
    ...(BuildCacheUsage !== undefined && { BuildCache: BuildCacheUsage.Items, BuilderSize: BuildCacheUsage.TotalSize }),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
