import type { Logger } from 'pino';

import type { ImageSums } from './builder/cache/image-sums.ts';
import type { RunCaches } from './builder/cache/run-caches.ts';
import type { KeptContexts } from './builder/context/kept-contexts.ts';
import type { Cluster } from './cluster/cluster.ts';
import type { Config } from './config/daemon-config.ts';
import type { HealthChecks } from './containers/health/checks.ts';
import type { MemoryFiles } from './containers/runs/preparation/memory-files.ts';
import type { Runs } from './containers/runs/runs.ts';
import type { Samplers } from './containers/stats/samplers.ts';
import type { UsageHistory } from './containers/stats/usage-history.ts';
import type { ContainerStore } from './containers/store.ts';
import type { Copies } from './copies/copies.ts';
import type { Database } from './db/database.ts';
import type { Events } from './events/events.ts';
import type { ExecStore } from './exec/store.ts';
import type { IdMap } from './host/users/id-map.ts';
import type { ImageStore } from './images/store.ts';
import type { LayerDownloads } from './images/transfers/layers/layer-downloads.ts';
import type { LayerSources } from './images/transfers/layers/layer-sources.ts';
import type { ImageUsage } from './images/usage.ts';
import type { Blobs } from './layers/blobs.ts';
import type { Layers } from './layers/layers.ts';
import type { Archives } from './layers/threads/archives.ts';
import type { Clock } from './lib/clock.ts';
import type { Background } from './lib/concurrency/background.ts';
import type { KeyLock } from './lib/concurrency/key-lock.ts';
import type { Deliveries } from './logs/delivery/deliveries.ts';
import type { PluginRuns } from './managed-plugins/runs/runs.ts';
import type { InstalledPlugins } from './managed-plugins/store.ts';
import type { Networks } from './networks/networks.ts';
import type { Page } from './page/page.ts';
import type { Plugins } from './plugins/plugins.ts';
import type { Runtimes } from './runtime/runtimes.ts';
import type { Shim } from './runtime/shim/shim.ts';
import type { SetAside } from './trees/set-aside.ts';
import type { Trash } from './trees/trash.ts';
import type { VolumeClaims } from './volumes/claims.ts';
import type { VolumeDrivers } from './volumes/drivers.ts';
import type { VolumeUsage } from './volumes/remove.ts';
import type { VolumeStore } from './volumes/store.ts';

/** The parts of the engine. Operations name the few that they use; only routes and `start.ts` see all of them. */
export type Engine = Readonly<{
  /** Replaced by a reload: read it each time, keep no copy. */
  config: Config;
  /** For work that nobody awaits. */
  background: Background;
  clock: Clock;
  log: Logger;
  db: Database;
  /** The ids of containers' users on the host; undefined without `--userns-remap`. */
  idMap: IdMap | undefined;
  /** One key per object, its full id. */
  locks: KeyLock;
  events: Events;
  /** The id in /info, made once for this data root. */
  daemonId: string;
  /** This daemon as a member of a cluster, or as none. */
  cluster: Cluster;
  /** The page in a browser. */
  page: Page;
  /** For files without a record. */
  setAside: SetAside;
  blobs: Blobs;
  archives: Archives;
  layers: Layers;
  /** Copies of files, out of containers and into them. */
  copies: Copies;
  /** Folders that steps of builds share. */
  runCaches: RunCaches;
  /** Contexts of earlier builds, of which clients send the changes alone. */
  keptContexts: KeptContexts;
  /** For COPY --from. */
  imageSums: ImageSums;
  images: ImageStore;
  /** From registries, shared by all pulls. */
  layerDownloads: LayerDownloads;
  /** Where layers came from and went to. */
  layerSources: LayerSources;
  /** Asked before an image is removed. */
  imageUsage: ImageUsage;
  containers: ContainerStore;
  runs: Runs;
  samplers: Samplers;
  /** The usage of containers of the last hour. */
  usageHistory: UsageHistory;
  /** Files that containers get at their start, in memory alone. */
  memoryFiles: MemoryFiles;
  /** Deliveries of logs to their receivers. */
  deliveries: Deliveries;
  health: HealthChecks;
  execs: ExecStore;
  /** The shims of running execs. */
  execShims: Map<string, Shim>;
  runtimes: Runtimes;
  networks: Networks;
  /** All that can be asked. */
  plugins: Plugins;
  /** The engine's own. */
  installedPlugins: InstalledPlugins;
  pluginRuns: PluginRuns;
  pluginTrash: Trash;
  volumes: VolumeStore;
  volumeDrivers: VolumeDrivers;
  /** Volumes claimed by containers that are being created. */
  volumeClaims: VolumeClaims;
  /** Asked before a volume is removed. */
  volumeUsage: VolumeUsage;
}>;
