import { EngineError } from '../../lib/errors.ts';
import { sharedWith, sharing } from '../../lib/shared-namespace.ts';
import { isUserNetwork, networkModeOf } from '../../networks/settings/mode.ts';
import { storedAliases, storedLinks } from '../links/links.ts';
import type { Container, ContainerStore } from '../store.ts';
import type { HostConfig } from './host-config/host-config-schema.ts';

/** Replaces names of other containers by their ids, because a name may change. */
export function resolveOtherContainers(containers: ContainerStore, hostConfig: HostConfig): HostConfig {
  const { NetworkMode, PidMode, IpcMode, Links } = hostConfig;
  return {
    ...hostConfig,
    Links: linksById(containers, Links, NetworkMode),
    NetworkMode: networkById(containers, NetworkMode),
    PidMode: modeById(containers, PidMode),
    IpcMode: modeById(containers, IpcMode),
  };
}

/** Not `notFound`: clients take a 404 for a missing image. */
export function findOtherContainer(containers: ContainerStore, ref: string, context = ''): Container {
  try {
    return containers.find(ref);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', `${context}${error.message}`, { cause: error });
  }
}

/** In user networks a link may precede its container, because its alias resolves when it is asked for. */
function linksById(containers: ContainerStore, links: HostConfig['Links'], mode: string): HostConfig['Links'] {
  if (links === null || links.length === 0) return links;
  return isUserNetwork(networkModeOf(mode))
    ? storedAliases(links, containers)
    : storedLinks(links, (ref) => linkedContainer(containers, ref));
}

function linkedContainer(containers: ContainerStore, ref: string): Container {
  return findOtherContainer(containers, ref, `could not get container for ${ref}: `);
}

function modeById(containers: ContainerStore, mode: string): string {
  const other = sharedWith(mode);
  return other === undefined ? mode : sharing(findOtherContainer(containers, other).id);
}

/** As in docker, a network is looked up at the start, and so is a container whose network is shared. */
function networkById(containers: ContainerStore, mode: string): string {
  try {
    return modeById(containers, mode);
  } catch (error) {
    if (error instanceof EngineError) return mode;
    throw error;
  }
}
