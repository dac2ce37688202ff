import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Logger } from 'pino';

import { ImageSums } from './builder/cache/image-sums.ts';
import { RunCaches } from './builder/cache/run-caches.ts';
import { KeptContexts } from './builder/context/kept-contexts.ts';
import { removeBuilds } from './builder/recovery.ts';
import { Cluster } from './cluster/cluster.ts';
import type { Config } from './config/daemon-config.ts';
import { LiveConfig } from './config/live-config.ts';
import { healthParts } from './containers/health/parts.ts';
import { beginAutoRemovals } from './containers/lifecycle/auto-remove.ts';
import { containerParts } from './containers/parts.ts';
import { containerFolders, reconcileContainers } from './containers/runs/recovery/reconcile.ts';
import { Restarts } from './containers/runs/restarts.ts';
import { stopAllContainers } from './containers/runs/stop-all.ts';
import { isAlive } from './containers/state.ts';
import { Copies } from './copies/copies.ts';
import { checkDatabase } from './db/check-database.ts';
import { Database } from './db/database.ts';
import { FolderLock } from './db/folder-lock.ts';
import { DatabaseInUse } from './db/identity.ts';
import { logBadRecords } from './db/log-bad-records.ts';
import type { Engine } from './engine.ts';
import { eventParts } from './events/parts.ts';
import { execParts } from './exec/parts.ts';
import { reconcileExecs } from './exec/reconcile.ts';
import { privateMount } from './host/mounts/private-mount.ts';
import type { IdMap } from './host/users/id-map.ts';
import { mapContainers } from './host/users/mapped-netns.ts';
import { ownIds } from './host/users/own-ids.ts';
import { mapOfRemap } from './host/users/remap.ts';
import { openListeners } from './http/listening/listeners.ts';
import { serveMetrics, type MetricsListener } from './http/listening/metrics-listener.ts';
import { PendingRequests } from './http/listening/pending-requests.ts';
import { TcpLimits } from './http/listening/tcp-limits.ts';
import { buildServer } from './http/server.ts';
import { logMissingFiles } from './images/missing-files.ts';
import { imageParts } from './images/parts.ts';
import { Archives } from './layers/threads/archives.ts';
import { systemClock } from './lib/clock.ts';
import { Background } from './lib/concurrency/background.ts';
import { KeyLock } from './lib/concurrency/key-lock.ts';
import { hasCode } from './lib/errors.ts';
import { newId } from './lib/ids.ts';
import { Deliveries } from './logs/delivery/deliveries.ts';
import { managedPluginParts } from './managed-plugins/parts.ts';
import { endAllPlugins } from './managed-plugins/runs/disable.ts';
import { reconcilePlugins } from './managed-plugins/runs/reconcile.ts';
import { networkParts } from './networks/parts.ts';
import { loadUsualProfile } from './oci/security/apparmor.ts';
import { Page } from './page/page.ts';
import { Authorization } from './plugins/authorization.ts';
import { Plugins } from './plugins/plugins.ts';
import { routes } from './routes.ts';
import { Runtimes } from './runtime/runtimes.ts';
import { SHIM_PROGRAM } from './runtime/shim/shim-program.ts';
import { engineMetrics } from './system/metrics/engine-metrics.ts';
import { Pidfile } from './system/pidfile.ts';
import { reloadSettings } from './system/reload.ts';
import { prepareRoots } from './system/roots.ts';
import { SetAside } from './trees/set-aside.ts';
import { volumeParts } from './volumes/parts.ts';

/** A running daemon. Disposing ends it; containers go on unless live-restore is off. */
export type Daemon = AsyncDisposable & {
  engine: Engine;
  /** Where it listens. */
  hosts: readonly string[];
  /** Puts new settings in force, or throws and leaves the old ones. */
  reload: (next: Config) => void;
};

/** Builds the parts, finds what survived the last daemon, and then lets clients in. Undoes everything when it fails. */
export async function startDaemon(config: Config, log: Logger): Promise<Daemon> {
  await using undo = new AsyncDisposableStack();
  const idMap = mapOfRemap(config.usernsRemap);
  mapContainers(idMap && { map: idMap, program: SHIM_PROGRAM });
  const db = openRoots(config, idMap, log, undo);
  const live = new LiveConfig(config);
  const engine = buildEngine(live, { db, idMap }, log, undo);
  const restarts = new Restarts(engine);
  await findSurvivors(engine, restarts);
  await engine.cluster.resume();
  engine.background.run('load the profile of AppArmor', {}, loadUsualProfile);
  // The last part ends first: no container may be started while all of them are stopped.
  undo.defer(async () => (engine.config.liveRestore ? undefined : await endAllPlugins(engine)));
  undo.defer(async () => (engine.config.liveRestore ? undefined : await stopAllContainers(engine)));
  undo.defer(async () => await engine.cluster.holdTasks());
  undo.use(restarts);
  undo.use(engine.pluginRuns);
  const pending = new PendingRequests(engine.clock);
  const limits = config.apiRateLimit === undefined ? undefined : new TcpLimits(config.apiRateLimit);
  const authorization = await authorizationOf(engine);
  const needs = {
    get config() {
      return live.current;
    },
    log,
    authorization,
  };
  const listener = buildServer(needs, routes(engine), pending, limits);
  const { hosts } = undo.use(await openListeners(config, listener, pending, limits?.overTcp(listener) ?? listener));
  undo.use(await engine.page.begin({ listener, pending }));
  if (config.metricsAddr !== '') undo.use(await openMetrics(engine, config.metricsAddr));
  restarts.begin();
  beginAutoRemovals(engine);
  const parts = undo.move();
  return {
    engine,
    hosts,
    reload: (next) => {
      reloadSettings(engine, live, next);
      if (live.current.apiRateLimit !== undefined) limits?.use(live.current.apiRateLimit);
    },
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

async function openMetrics(engine: Engine, address: string): Promise<MetricsListener> {
  const listener = await serveMetrics(address, () => engineMetrics(engine));
  engine.log.info({ address: listener.address }, 'metrics are served');
  return listener;
}

/** Takes the data root and the exec root for this daemon alone, and opens the database. */
function openRoots(config: Config, idMap: IdMap | undefined, log: Logger, undo: AsyncDisposableStack): Database {
  prepareRoots(config, idMap);
  undo.use(new FolderLock(config.dataRoot, 'data root'));
  if (config.execRoot !== config.dataRoot) undo.use(new FolderLock(config.execRoot, 'exec root'));
  undo.use(new Pidfile(config.pidfile));
  undo.use(privateMount(config.dataRoot, { kept: ['volumes', 'plugins'].map((name) => join(config.dataRoot, name)) }));
  const restoredFrom = checkDatabase(config.dataRoot);
  if (restoredFrom !== undefined) log.warn({ from: restoredFrom }, 'the database is a backup that was restored');
  const db = undo.use(new Database(join(config.dataRoot, 'gantry.db')));
  undo.use(new DatabaseInUse(db, config.dataRoot, log));
  return db;
}

/** Makes the parts. They end in the reverse order: background work after the networks that it may still use. */
function buildEngine(
  live: LiveConfig,
  { db, idMap }: { db: Database; idMap: IdMap | undefined },
  log: Logger,
  undo: AsyncDisposableStack,
): Engine {
  const config = live.current;
  const clock = systemClock;
  const background = new Background(clock, log);
  const ofEvents = eventParts({ clock, db, log });
  const ofImages = imageParts({ config, db, log }, undo);
  const ofContainers = containerParts({ background, clock, db });
  undo.use(background);
  const ofPlugins = managedPluginParts({ config, db, log }, undo);
  const plugins = new Plugins(clock, config.pluginFolders, ofPlugins.pluginRuns);
  const { sandboxOwners } = ofContainers;
  const ofCluster = (ref: string): ReturnType<Cluster['network']> => cluster.network(ref);
  const closedPorts = (): Cluster['closedPorts'] => cluster.closedPorts;
  const tunnelPort = (): number => cluster.tunnelPort;
  const ofNetworks = networkParts(
    { background, clock, config, db, log, plugins, ofCluster, closedPorts, tunnelPort, sandboxOwners },
    undo,
  );
  const ofHealth = healthParts(
    { background, clock, db, live, ...ofEvents, ...ofContainers.parts, ...ofImages, ...ofNetworks },
    undo,
  );
  const ofVolumes = volumeParts({ config, db, log, plugins }, undo);
  const locks = new KeyLock();
  const { volumeDrivers } = ofVolumes;
  const cluster = undo.use(
    new Cluster({ background, clock, config, ...ofEvents, locks, log, volumeDrivers, engine: (): Engine => engine }),
  );
  const engine: Engine = {
    get config() {
      return live.current;
    },
    background,
    clock,
    log,
    db,
    idMap,
    locks,
    cluster,
    daemonId: daemonId(config.dataRoot),
    page: new Page({ clock, config, log, usageHistory: ofContainers.parts.usageHistory }),
    setAside: new SetAside(config.dataRoot, clock.now(), log),
    archives: undo.use(new Archives(background, { idMap: idMap ?? ownIds })),
    deliveries: undo.use(new Deliveries({ background, clock, log })),
    copies: undo.use(new Copies(background, ofImages.layers.writable.directory)),
    imageSums: new ImageSums(),
    runCaches: undo.use(new RunCaches({ background, live, log })),
    keptContexts: undo.use(new KeptContexts({ live, log })),
    runtimes: new Runtimes(config),
    ...ofEvents,
    ...ofContainers.parts,
    ...ofHealth,
    ...execParts({ db }),
    ...ofImages,
    ...ofNetworks,
    ...ofPlugins,
    plugins,
    ...ofVolumes,
  };
  return engine;
}

/** Brings records, containers and folders together after the end of the last daemon, however it ended. */
async function findSurvivors(engine: Engine, restarts: Restarts): Promise<void> {
  const { config, containers, db, images, layers, log, setAside, volumeDrivers, volumeUsage, volumes } = engine;
  log.debug('looking for survivors of the last daemon');
  await reconcilePlugins(engine);
  await volumeDrivers.reconcile(volumes, (volume) => volumeUsage.runningUsersOf(volume));
  await reconcileContainers(engine, (id) => {
    restarts.startWithDaemon(id);
    engine.runs.of(id).tellSettled();
  });
  deliverRemains(engine);
  await reconcileExecs(engine);
  removeBuilds(engine);
  logBadRecords(db, log);
  setAside.tellEarlier();
  images.reconcile();
  // One whose folder is still being removed gives up its layers after it.
  layers.reconcile(containers.ids().union(containerFolders(config)), images.ids(), setAside);
  engine.layerSources.prune();
  logMissingFiles(engine, log);
}

/** Containers that do not run may still have lines that were not delivered. */
function deliverRemains({ containers, deliveries }: Engine): void {
  for (const container of containers.all()) if (!isAlive(container.state)) deliveries.runEnded(container);
}

/** None where no plugin is asked. */
async function authorizationOf({ config, plugins }: Engine): Promise<Authorization | undefined> {
  if (config.authorizationPlugins.length === 0) return undefined;
  const authorization = new Authorization(plugins, config.authorizationPlugins);
  await authorization.check();
  return authorization;
}

function daemonId(dataRoot: string): string {
  const path = join(dataRoot, 'daemon-id');
  try {
    closeSync(openSync(path, 'wx', 0o600));
    writeFileSync(path, newId());
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
  return readFileSync(path, 'utf8');
}
