import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import type { Engine } from '../../../engine.ts';
import { EngineError } from '../../../lib/errors.ts';
import { sharedWith } from '../../../lib/shared-namespace.ts';
import type { PortRequest, SandboxRequest } from '../../../networks/endpoints/sandbox.ts';
import { networkModeOf } from '../../../networks/settings/mode.ts';
import type { Namespaces } from '../../../oci/description.ts';
import { wantedEndpoints } from '../../networks/attachments.ts';
import { isAlive } from '../../state.ts';
import type { Container } from '../../store.ts';
import { containerFolder } from '../places.ts';

type Needs = Pick<Engine, 'config' | 'containers'>;

/** The network settings of the container. */
export function sandboxRequest(container: Container): SandboxRequest {
  const { config, hostConfig } = container;
  return {
    ...portRequest(container),
    mode: networkModeOf(hostConfig.NetworkMode),
    isDisabled: config.NetworkDisabled === true,
    mac: config.MacAddress,
    endpoints: wantedEndpoints(container),
  };
}

/** The ports to publish. */
export function portRequest({ id, name, config, hostConfig }: Container): PortRequest {
  return {
    containerId: id,
    containerName: name,
    portBindings: hostConfig.PortBindings,
    publishAll: hostConfig.PublishAllPorts,
    exposed: Object.keys(config.ExposedPorts ?? {}),
  };
}

/** The namespaces to join; `shimPid` is that of a shim which holds the container's own network namespace. */
export function namespacesOf(engine: Needs, { hostConfig }: Container, shimPid: number | undefined): Namespaces {
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
function pidOf(engine: Needs, ref: string, kind: keyof typeof cannotJoin): number {
  const other = engine.containers.find(ref);
  if (!isAlive(other.state)) throw new EngineError('failed', cannotJoin[kind](other.id));
  return other.state.pid;
}

/** `ofPid`: a process whose /dev/shm the shim mounts at `target`; undefined where the host's is taken. */
export type SharedMemory = Readonly<{ target: string; ofPid: number | undefined }>;

/** The owner of the container's /dev/shm: undefined for one of its own, or for none. */
export function sharedMemoryOf(engine: Needs, { id, hostConfig }: Container): SharedMemory | undefined {
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
