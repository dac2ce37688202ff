import { listContainers } from '../containers/queries/list.ts';
import { isAlive, type ContainerState } from '../containers/state.ts';
import type { Engine } from '../engine.ts';
import { listImages } from '../images/list.ts';
import { imageSummary } from '../images/present.ts';
import type { Image } from '../images/store.ts';
import { presentVolume } from '../volumes/present.ts';
import { isPlainLocal, volumeBytes } from '../volumes/size.ts';
import type { Volume } from '../volumes/store.ts';
import type { DiskUsageWire } from './disk-usage-schema.ts';

type Sizes = Readonly<{ writableBytes: number; rootBytes: number }>;
type KeptSizes = Sizes & Readonly<{ state: ContainerState; writes: number }>;
type KeptVolume = Readonly<{ bytes: number; cursor: number; measuredAt: Temporal.Instant }>;

/** Files of a volume may be changed on the machine, without an event. */
const MAX_VOLUME_AGE_SECONDS = 60;

/**
 * The disk usage of all objects. Layers have their sizes in their records. A tree is measured again only if it may have
 * changed: that of a container by its runs and archives, that of a volume while anything happens. Clients at the same
 * time share one look.
 */
export class DiskUsage {
  readonly #engine: Engine;
  readonly #containers = new Map<string, KeptSizes>();
  readonly #volumes = new Map<string, KeptVolume>();
  #underWay: Promise<DiskUsageWire> | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async look(): Promise<DiskUsageWire> {
    this.#underWay ??= this.#measure().finally(() => (this.#underWay = undefined));
    return await this.#underWay;
  }

  async #measure(): Promise<DiskUsageWire> {
    const { layers, runCaches } = this.#engine;
    const caches = await runCaches.list();
    return {
      LayersSize: layers.all().reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      Images: this.#images(),
      Containers: await this.#sizedContainers(),
      Volumes: await this.#sizedVolumes(),
      BuildCache: caches.map(({ id, bytes, createdAt, usedAt, isUsed }) => ({
        ID: id,
        Parent: '',
        Type: 'exec.cachemount',
        Description: 'RUN --mount=type=cache',
        InUse: isUsed,
        Shared: false,
        Size: bytes,
        CreatedAt: createdAt.toString(),
        LastUsedAt: usedAt.toString(),
        UsageCount: 0,
      })),
      BuilderSize: caches.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  }

  #images(): DiskUsageWire['Images'] {
    const { images, imageUsage, layers } = this.#engine;
    const listed = listImages({ images }, { all: false, filters: new Map() });
    const uses = new Map<string, number>();
    for (const { image } of listed) for (const id of image.layers) uses.set(id, (uses.get(id) ?? 0) + 1);
    const sharedBytes = (image: Image): number =>
      image.layers.filter((id) => uses.get(id)! > 1).reduce((sum, id) => sum + (layers.get(id)?.sizeBytes ?? 0), 0);
    return listed.map((each) => ({
      ...imageSummary(each),
      SharedSize: sharedBytes(each.image),
      Containers: imageUsage.usedBy(each.image.id).length,
    }));
  }

  /** One after the other, because each may need descriptors and a child process. */
  async #sizedContainers(): Promise<DiskUsageWire['Containers']> {
    const sized: DiskUsageWire['Containers'] = [];
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

  async #sizedVolumes(): Promise<DiskUsageWire['Volumes']> {
    const { volumeUsage, volumes } = this.#engine;
    const sized: DiskUsageWire['Volumes'] = [];
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
