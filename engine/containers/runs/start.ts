import { closeSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { prepareMoves } from '../../host/cgroups/cgroup-moves.ts';
import { detectCgroups } from '../../host/cgroups/cgroups.ts';
import { prepareRealtime } from '../../host/cgroups/realtime.ts';
import { nextTurn, settlesWithin } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { measure } from '../../lib/measures.ts';
import { addressesOf, hasAddress, type Endpoint } from '../../networks/endpoints/endpoint.ts';
import { openSandbox } from '../../networks/endpoints/sandbox.ts';
import { deviceEdits } from '../../oci/cdi/devices.ts';
import { prepareResources } from '../../oci/resources.ts';
import { rootSeenBy } from '../../oci/root-files.ts';
import { appArmorProfile, ensureProfile } from '../../oci/security/apparmor.ts';
import { hasHome, ociSpec } from '../../oci/spec.ts';
import { resolveUser, type ContainerUser } from '../../oci/user.ts';
import { removeShimFolder } from '../../runtime/shim/shim-folder.ts';
import { Shim, type ShimOptions } from '../../runtime/shim/shim.ts';
import { StartFailed } from '../../runtime/start-failure.ts';
import { emitContainer, emitMounts } from '../container-events.ts';
import { linkEnvironment, linkHosts, tellLinkedAddress } from '../links/links.ts';
import { asOfNow } from '../networks/attachments.ts';
import { registrationOf, usesResolver } from '../networks/registrations.ts';
import type { HostConfig } from '../settings/host-config/host-config-schema.ts';
import { securityOptions } from '../settings/security-option.ts';
import { isAlive, transition, type Alive } from '../state.ts';
import type { Container } from '../store.ts';
import { followRun, recordFailedStart, type EndNeeds } from './end.ts';
import { cgroupPathOf, cgroupPlace, containerFolder, runtimeCgroupOf, shimFolder } from './places.ts';
import { prepareBindSources } from './preparation/bind-sources.ts';
import { filesFor, withOwnersHostname } from './preparation/etc-files.ts';
import { prepareFolder, writeFiles } from './preparation/memory-files.ts';
import { placedMounts, seenThroughShim } from './preparation/mount-places.ts';
import { namespacesOf, sandboxRequest, sharedMemoryOf } from './preparation/namespaces.ts';
import { describeContainer } from './preparation/process.ts';
import { shimOptions } from './preparation/shim-options.ts';
import { mapOf, shimMapOf } from './preparation/user-maps.ts';
import { mountVolumes, unmountVolumes } from './preparation/volume-mounts.ts';
import { removeIfLeft, removeRemains } from './remove-remains.ts';

export type StartNeeds = EndNeeds & Pick<Engine, 'idMap' | 'layers' | 'locks' | 'memoryFiles' | 'volumes'>;

type StartOptions = Readonly<{
  /** Variables of this run's process, `NAME=value`, which no record keeps, such as secrets. */
  variables?: readonly string[];
}>;

/** A start waits this long for the clean-up of the last run. */
const CLEANUP_TIMEOUT_SECONDS = 30;
const COPIES_TIMEOUT_SECONDS = 30;

/**
 * Throws `notModified` when it runs already or its restart policy is about to start it, `failed` when the runtime cannot
 * start it. Specification, endpoint 10.
 */
export async function startContainer(engine: StartNeeds, ref: string, options: StartOptions = {}): Promise<void> {
  const { id } = engine.containers.find(ref);
  using _lock = await engine.locks.hold(id);
  await startHeld(engine, id, options);
}

/** Like `startContainer`, for a holder of the container's lock. */
export async function startHeld(
  engine: StartNeeds,
  id: string,
  { byPolicy = false, variables = [] }: StartOptions & { byPolicy?: boolean } = {},
): Promise<void> {
  const measured = measure('container', 'start');
  const claimed = claim(engine, id, byPolicy);
  if (!byPolicy) engine.runs.of(id).forgetRestarts();
  prepareMoves();
  try {
    await launch(engine, claimed, variables);
    measured();
  } catch (error) {
    const exitCode = error instanceof StartFailed ? error.exitCode : 128;
    const message = messageOf(error);
    engine.background.untilDone('record a start that failed', { container: id }, () =>
      recordFailedStart(engine, id, { exitCode, message, byPolicy }),
    );
    await nextTurn(engine.clock); // clients that follow the events hear of it before the answer
    throw error instanceof StartFailed ? new EngineError('failed', error.message, { cause: error }) : error;
  }
}

function claim({ config, containers, idMap }: StartNeeds, id: string, byPolicy: boolean): Container {
  return containers.change(id, (current) => {
    const { state } = current;
    if (state.status === 'paused') {
      throw new EngineError('conflict', 'cannot start a paused container, try unpause instead');
    }
    if (isAlive(state) || (state.status === 'restarting' && !byPolicy)) {
      throw new EngineError('notModified', `container ${id} is already started`);
    }
    if (state.status === 'starting' || state.status === 'removing') {
      throw new EngineError('conflict', `container ${id} is ${state.status}`);
    }
    return {
      ...current,
      restartCount: state.status === 'restarting' ? current.restartCount : 0,
      limitWrites: undefined,
      unitWords: undefined,
      cgroup: cgroupPlace(config, current),
      appArmorProfile: profileOf(current),
      idMap: mapOf(idMap, current),
      state: transition(state, { status: 'starting', from: state }),
    };
  });
}

async function launch(engine: StartNeeds, claimed: Container, variables: readonly string[]): Promise<void> {
  const { id } = claimed;
  if (!(await settlesWithin(engine.runs.of(id).cleaned(), CLEANUP_TIMEOUT_SECONDS, engine.clock))) {
    throw new EngineError('failed', `the last run of container ${id} could not be cleaned up yet`);
  }
  if (claimed.idMap !== undefined) await copiesEnded(engine, id);
  await using undo = new AsyncDisposableStack();
  const folder = shimFolder(engine.config, id);
  const removeFolder = async (): Promise<void> => await removeShimFolder(folder);
  await removeFolder();
  undo.defer(
    async () => await engine.background.run('remove the folder of a shim', { container: id }, removeFolder).done,
  );
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await ensureProfile(claimed.appArmorProfile ?? '');
  const devices = await deviceEdits(engine.config.cdiSpecDirs, requestedDevices(claimed.hostConfig));
  prepareBindSources(claimed);
  undo.defer(() => unmountAfterwards(engine, claimed));
  const mounts = await mountVolumes(engine, claimed);

  const container = { ...withOwnersHostname(engine.containers, claimed), mounts };
  const given = await engine.memoryFiles.of(container);
  const links = linkHosts(engine, container);
  const map = shimMapOf(engine, container);
  const { netns, endpoints } = await openSandbox(engine, { ...sandboxRequest(container), usersOf: map?.ofPid });
  mkdirSync(containerFolder(engine.config, id), { recursive: true, mode: 0o710 });
  if (container.logPath !== '') mkdirSync(dirname(container.logPath), { recursive: true, mode: 0o710 });
  const memory = sharedMemoryOf(engine, container);
  const filesTarget = prepareFolder(folder, given);
  const placed = placedMounts(engine, container);
  const { places } = placed;
  const options = shimOptions(engine, container, { directory: folder, netns, memory, places, filesTarget, map });
  const shim = await spawnShim(options, netns);
  undo.defer(async () => await endShim(engine, container, shim));
  const fileMounts = writeFiles(shim.pid, filesTarget, given, container.idMap);
  const isServed = usesResolver(endpoints);
  const named = isServed ? serve(engine, container, shim) : undefined;
  named?.catch(() => undefined); // awaited below, when the rest is prepared

  const overlay = engine.layers.overlay(id);
  const root = rootSeenBy(shim.pid, overlay);
  const described = {
    ...withVariables(container, variables),
    mounts: [...seenThroughShim(placed, shim.pid), ...fileMounts],
  };
  const description = describeContainer(described, {
    root: { path: overlay.target, visibleAt: root },
    user: await userOf(container, root),
    namespaces: namespacesOf(engine, container, netns === undefined ? undefined : shim.pid),
    users: container.idMap && { path: `/proc/${shim.pid}/fd/5`, map: container.idMap },
    files: filesFor(engine, container, { ...hostsOf(endpoints), links, usesResolver: isServed }),
    shm: memory?.target,
    linkVariables: linkEnvironment(engine, container),
    cgroup: runtimeCgroupOf(container),
    defaultUlimits: engine.config.defaultUlimits,
    devices,
  });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(ociSpec(description)));
  using _attaching = await engine.runs.of(id).connectClients(shim);
  const [height = 0, width = 0] = container.hostConfig.ConsoleSize;
  if (container.config.Tty && height > 0 && width > 0) await shim.resize(width, height);
  if (!description.cgroup.bySystemd) prepareResources(description.limits, description.cgroup.path);
  prepareRealtime(detectCgroups(), dirname(cgroupPathOf(container)), engine.config.realtime);
  await named;
  const { pid, startedAt } = await shim.start();

  recordRun(engine, id, { status: 'running', pid, startedAt });
  undo.move();
  followRun(engine, id, shim);
  engine.background.untilDone('update the addresses in linked containers', { container: id }, () =>
    tellLinkedAddress(engine, id),
  );
}

function withVariables(container: Container, variables: readonly string[]): Container {
  const { config } = container;
  return { ...container, config: { ...config, Env: [...config.Env, ...variables] } };
}

/** The daemon's mount has other owners than one with a map, and a writable layer must not be mounted twice. */
async function copiesEnded({ layers, clock }: StartNeeds, id: string): Promise<void> {
  if (await settlesWithin(layers.unmountedOnHost(id), COPIES_TIMEOUT_SECONDS, clock)) return;
  throw new EngineError('conflict', `files of container ${id} are being copied`);
}

/** The devices of requests to the driver `cdi`. Throws `failed` for anything but names in one. */
function requestedDevices({ DeviceRequests }: HostConfig): string[] {
  return (DeviceRequests ?? []).flatMap(({ Count = 0, DeviceIDs, Options }) => {
    if (Count !== 0) throw new EngineError('failed', 'unexpected count in CDI device request');
    const hasOptions = Object.keys(Options ?? {}).length > 0;
    if (hasOptions) throw new EngineError('failed', 'unexpected options in CDI device request');
    return DeviceIDs ?? [];
  });
}

/** The shim holds the namespace before it has a process. */
async function serve(engine: StartNeeds, container: Container, { pid }: Shim): Promise<void> {
  await engine.networks.dns.serve(registrationOf(engine, container, { pid, netns: `/proc/${pid}/fd/3` }));
}

/** The container's own lines in the hosts file. */
function hostsOf(endpoints: readonly Endpoint[]): { addresses: string[]; gateway: string } {
  const addressed = endpoints.filter((endpoint) => hasAddress(endpoint) && endpoint.isWayOut !== true);
  return { addresses: addressed.flatMap(addressesOf), gateway: addressed[0]?.gateway ?? '' };
}

/** The next start waits for this clean-up, which waits for the end of the processes. */
function unmountAfterwards(engine: StartNeeds, container: Container): void {
  const run = engine.runs.of(container.id);
  run.leave(run.cleaned().then(async () => await unmountVolumes(engine, container).done));
}

async function userOf({ config, hostConfig }: Container, root: string): Promise<ContainerUser> {
  const written = { user: config.User, groupAdd: hostConfig.GroupAdd ?? [] };
  return await resolveUser(written, root, { needsHome: !hasHome(config.Env) });
}

function profileOf({ hostConfig }: Container): string {
  return appArmorProfile({ wanted: securityOptions(hostConfig).apparmor, privileged: hostConfig.Privileged });
}

/** One commit with its events: no step after it can fail. */
export function recordRun(engine: StartNeeds, id: string, state: Alive): void {
  engine.containers.together(() => {
    const running = engine.containers.change(id, (current) => ({
      ...current,
      state: transition(current.state, state),
      error: '',
      oomKilled: false,
      stoppedByUser: false,
      attachments: asOfNow(current, engine.networks.endpointsOf(id)),
    }));
    emitMounts(engine.events, running);
    emitContainer(engine.events, 'start', running);
    engine.health.begin(running);
  });
}

/** Also ends a process that runs already, because its end would never be recorded. */
async function endShim(engine: StartNeeds, container: Container, shim: Shim): Promise<void> {
  const { id, hostConfig } = container;
  await shim.end();
  const { done } = engine.background.untilDone('clean up after a start', { container: id }, async () => {
    const remove = shim.wasLost ? removeRemains : removeIfLeft;
    await remove(engine.runtimes.toRemove(hostConfig.Runtime), id, cgroupPathOf(container));
  });
  engine.runs.of(id).leave(done); // the next start waits for it
}

async function spawnShim(options: ShimOptions, netns: number | undefined): Promise<Shim> {
  try {
    return await Shim.spawn(options);
  } finally {
    if (netns !== undefined) closeSync(netns); // the shim holds it now
  }
}
