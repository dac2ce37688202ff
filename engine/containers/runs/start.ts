import { closeSync, mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import type { Events } from '../../events/events.ts';
import { prepareMoves } from '../../host/cgroup-moves.ts';
import type { Layers } from '../../layers/layers.ts';
import type { Background } from '../../lib/background.ts';
import { settlesWithin, type Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import type { KeyLock } from '../../lib/key-lock.ts';
import { sharedWith } from '../../lib/shared-namespace.ts';
import { logDriverOf } from '../../logs/drivers.ts';
import { hasAddress, NO_PLACE } from '../../networks/endpoint.ts';
import { networkModeOf } from '../../networks/mode.ts';
import { openSandbox, type NetworkNeeds, type SandboxRequest } from '../../networks/sandbox.ts';
import { rootSeenBy } from '../../oci/root-files.ts';
import { hasHome, ociSpec, type Namespaces } from '../../oci/spec.ts';
import { resolveUser, type ContainerUser } from '../../oci/user.ts';
import type { Runtimes } from '../../runtime/runtimes.ts';
import { Shim } from '../../runtime/shim.ts';
import { StartFailed } from '../../runtime/start-failure.ts';
import { emitContainer, emitMounts } from '../container-events.ts';
import { linkEnvironment, linkHosts, tellLinkedAddress } from '../links/links.ts';
import { networkOwner } from '../links/network-owner.ts';
import { isAlive, transition, type Alive } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { prepareBindSources } from './bind-sources.ts';
import { etcFilesOf, writeEtcFiles, type EtcFiles, type Place } from './etc-files.ts';
import type { Exits } from './exits.ts';
import type { PendingAttaches } from './pending-attaches.ts';
import { cgroupPathOf, containerFolder, shimFolder } from './places.ts';
import { removeIfLeft, removeRemains } from './remains.ts';
import type { Shims } from './shims.ts';

export type StartNeeds = NetworkNeeds & {
  background: Background;
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  events: Events;
  exits: Exits;
  layers: Layers;
  locks: KeyLock;
  pendingAttaches: PendingAttaches;
  runtimes: Runtimes;
  shims: Shims;
};

/** A start waits this long for what the last run has left. */
const CLEANING_SECONDS = 30;

/** Throws `notModified` when it runs already, `failed` when the runtime cannot start it. Specification, endpoint 10. */
export async function startContainer(engine: StartNeeds, ref: string): Promise<void> {
  const { id } = engine.containers.find(ref);
  using _lock = await engine.locks.hold(id);
  await startHeld(engine, id, { restartCount: 0 });
}

/** The same for a caller that holds the container's lock. */
export async function startHeld(
  engine: StartNeeds,
  id: string,
  { restartCount, byPolicy = false }: { restartCount: number; byPolicy?: boolean },
): Promise<void> {
  const claimed = claim(engine.containers, id);
  prepareMoves();
  try {
    await launch(engine, claimed, restartCount);
  } catch (error) {
    const exitCode = error instanceof StartFailed ? error.exitCode : 128;
    const message = error instanceof Error ? error.message : String(error);
    engine.background.untilDone('record a start that failed', { container: id }, () =>
      engine.exits.recordFailedStart(id, { exitCode, message, restartCount, byPolicy }),
    );
    throw error instanceof StartFailed ? new EngineError('failed', error.message, { cause: error }) : error;
  }
}

function claim(containers: ContainerStore, id: string): Container {
  return containers.change(id, (current) => {
    const { state } = current;
    if (state.status === 'paused') {
      throw new EngineError('conflict', 'cannot start a paused container, try unpause instead');
    }
    if (isAlive(state)) throw new EngineError('notModified', `container ${id} is already started`);
    if (state.status === 'starting' || state.status === 'removing') {
      throw new EngineError('conflict', `container ${id} is ${state.status}`);
    }
    return { ...current, state: transition(state, { status: 'starting', from: state }) };
  });
}

async function launch(engine: StartNeeds, claimed: Container, restartCount: number): Promise<void> {
  const { id } = claimed;
  if (!(await settlesWithin(engine.shims.cleaned(id), CLEANING_SECONDS, engine.clock))) {
    throw new EngineError('failed', `what the last run of container ${id} has left could not be removed yet`);
  }
  await using undo = new AsyncDisposableStack();
  const folder = shimFolder(engine.config, id);
  const removeFolder = async (): Promise<void> => await rm(folder, { recursive: true, force: true });
  await removeFolder();
  undo.defer(
    async () => await engine.background.run('remove the folder of a shim', { container: id }, removeFolder).done,
  );
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  prepareBindSources(claimed);

  const container = withOwnersHostname(engine.containers, claimed);
  const links = linkHosts(engine, container);
  const { netns, endpoints } = await openSandbox(engine, sandboxRequest(container));
  const place = endpoints.find(hasAddress) ?? NO_PLACE;
  mkdirSync(containerFolder(engine.config, id), { recursive: true, mode: 0o710 });
  const memory = sharedMemoryOf(engine, container);
  const shim = await spawnShim(engine, container, folder, { netns, memory });
  undo.defer(async () => await endShim(engine, container, shim));

  const overlay = engine.layers.overlay(id);
  const spec = ociSpec({
    container,
    overlay,
    user: await userOf(container, rootSeenBy(shim.pid, overlay)),
    namespaces: namespacesOf(engine, container, netns === undefined ? undefined : shim.pid),
    files: filesFor(engine, container, { ...place, links }),
    shm: memory?.target,
    linkVariables: linkEnvironment(engine, container),
    cgroupPath: cgroupPathOf(container),
    defaultUlimits: engine.config.defaultUlimits,
  });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(spec));
  using _attaching = await engine.pendingAttaches.connectAll(id, shim);
  const [height = 0, width = 0] = container.hostConfig.ConsoleSize;
  if (container.config.Tty && height > 0 && width > 0) await shim.resize(width, height);
  const { pid, startedAt } = await shim.start();

  recordRun(engine, id, { status: 'running', pid, startedAt }, restartCount);
  undo.move();
  engine.shims.add(id, shim);
  engine.exits.follow(id, shim);
  engine.background.untilDone('tell linked containers of an address', { container: id }, () =>
    tellLinkedAddress(engine, id),
  );
}

async function userOf({ config, hostConfig }: Container, root: string): Promise<ContainerUser> {
  const written = { user: config.User, groupAdd: hostConfig.GroupAdd ?? [] };
  return await resolveUser(written, root, { needsHome: !hasHome(config.Env) });
}

/** One commit with its events: nothing comes after it that could fail. */
export function recordRun(engine: StartNeeds, id: string, state: Alive, restartCount: number): void {
  engine.containers.together(() => {
    const running = engine.containers.change(id, (current) => ({
      ...current,
      state: transition(current.state, state),
      error: '',
      oomKilled: false,
      restartCount,
      stoppedByUser: false,
    }));
    emitMounts(engine.events, running);
    emitContainer(engine.events, 'start', running);
  });
}

/** The process as well, where there is one already: nobody would ever record its end. */
async function endShim(engine: StartNeeds, container: Container, shim: Shim): Promise<void> {
  const { id, hostConfig } = container;
  await shim.end();
  const { done } = engine.background.untilDone('remove what a start has left', { container: id }, async () => {
    const remove = shim.wasLost ? removeRemains : removeIfLeft;
    await remove(engine.runtimes.get(hostConfig.Runtime), id, cgroupPathOf(container));
  });
  engine.shims.remove(id, done); // the next start waits for it
}

function sandboxRequest({ id, name, config, hostConfig }: Container): SandboxRequest {
  return {
    containerId: id,
    containerName: name,
    mode: networkModeOf(hostConfig.NetworkMode),
    isDisabled: config.NetworkDisabled === true,
    mac: config.MacAddress,
    portBindings: hostConfig.PortBindings,
    publishAll: hostConfig.PublishAllPorts,
    exposed: Object.keys(config.ExposedPorts ?? {}),
  };
}

async function spawnShim(
  engine: StartNeeds,
  container: Container,
  directory: string,
  { netns, memory }: { netns: number | undefined; memory: SharedMemory | undefined },
): Promise<Shim> {
  const { id, config, hostConfig } = container;
  const borrowed = memory?.ofPid === undefined ? undefined : { ofPid: memory.ofPid, target: memory.target };
  try {
    return await Shim.spawn({
      id,
      directory,
      runtime: engine.runtimes.get(hostConfig.Runtime),
      mode: { kind: 'container', rootfs: engine.layers.wholeOverlay(id), netns, memory: borrowed },
      tty: config.Tty,
      openStdin: config.OpenStdin,
      stdinOnce: config.StdinOnce,
      log: logDriverOf(container).shimLog(container),
      cgroupPath: cgroupPathOf(container),
    });
  } finally {
    if (netns !== undefined) closeSync(netns); // the shim holds it now
  }
}

function namespacesOf(engine: StartNeeds, { hostConfig }: Container, shimPid: number | undefined): Namespaces {
  const { NetworkMode, PidMode, IpcMode, UTSMode } = hostConfig;
  const joined = (mode: string, kind: keyof typeof cannotJoin): string | undefined => {
    if (mode === 'host') return 'host';
    const other = sharedWith(mode);
    return other === undefined ? undefined : `/proc/${pidOf(engine, other, kind)}/ns/${kind}`;
  };
  const network = shimPid === undefined ? joined(NetworkMode, 'net') : `/proc/${shimPid}/fd/3`;
  const uts = UTSMode === 'host' ? 'host' : undefined;
  return { network, pid: joined(PidMode, 'pid'), ipc: joined(IpcMode, 'ipc'), uts };
}

/** dockerd's words for a namespace of a container that does not run. */
const cannotJoin = {
  net: (id: string) => `cannot join network of a non running container: ${id}`,
  pid: (id: string) => `container ${id} is not running`,
  ipc: (id: string) => `can't join IPC of container ${id}: container ${id} is not running`,
};

/** The first process of the container whose namespace is shared. */
function pidOf(engine: StartNeeds, ref: string, kind: keyof typeof cannotJoin): number {
  const other = engine.containers.find(ref);
  if (!isAlive(other.state)) throw new EngineError('failed', cannotJoin[kind](other.id));
  return other.state.pid;
}

/** In another one's network a container is known by that one's name, which is the one in the files that they share. */
function withOwnersHostname(containers: ContainerStore, container: Container): Container {
  const { Hostname, Domainname } = networkOwner(container, (ref) => containers.find(ref)).config;
  if (container.config.Hostname === Hostname && container.config.Domainname === Domainname) return container;
  return containers.change(container.id, (current) => ({
    ...current,
    config: { ...current.config, Hostname, Domainname },
  }));
}

/** A container in another one's network has that one's files. */
function filesFor(engine: StartNeeds, container: Container, place: Place): EtcFiles | undefined {
  const owner = networkOwner(container, (ref) => engine.containers.find(ref));
  return owner === container ? writeEtcFiles(engine.config, container, place) : etcFilesOf(engine.config, owner.id);
}

type SharedMemory = Readonly<{ target: string; ofPid: number | undefined }>;

/** Whose /dev/shm the container gets: undefined for one of its own, or for none. */
function sharedMemoryOf(engine: StartNeeds, { id, hostConfig }: Container): SharedMemory | undefined {
  const { IpcMode } = hostConfig;
  if (IpcMode === 'host') return { target: '/dev/shm', ofPid: undefined };
  const ref = sharedWith(IpcMode);
  if (ref === undefined) return undefined;
  const ofPid = pidOf(engine, ref, 'ipc');
  const other = engine.containers.find(ref);
  if (['private', 'none'].includes(other.hostConfig.IpcMode)) {
    const hint = 'non-shareable IPC (hint: use IpcMode:shareable for the donor container)';
    throw new EngineError('failed', `can't join IPC of container ${other.id}: ${hint}`);
  }
  const target = join(containerFolder(engine.config, id), 'shm');
  mkdirSync(target, { recursive: true, mode: 0o700 });
  return { target, ofPid };
}
