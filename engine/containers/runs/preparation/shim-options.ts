import type { Engine } from '../../../engine.ts';
import { logDriverOf } from '../../../logs/drivers.ts';
import type { ShimMap, ShimPlace } from '../../../runtime/shim/shim-options.ts';
import type { ShimOptions } from '../../../runtime/shim/shim.ts';
import type { Container } from '../../store.ts';
import { cgroupPathOf, runtimeCgroupOf } from '../places.ts';
import type { SharedMemory } from './namespaces.ts';

type Needs = Pick<Engine, 'layers' | 'runtimes'>;

type Given = Readonly<{
  /** The shim's folder. */
  directory: string;
  /** A descriptor; undefined where the container has no network namespace of its own. */
  netns: number | undefined;
  memory: SharedMemory | undefined;
  places: readonly ShimPlace[];
  filesTarget: string | undefined;
  map: ShimMap | undefined;
}>;

/** The options of a container's shim. Throws `invalid` for an unknown runtime. */
export function shimOptions(
  { layers, runtimes }: Needs,
  container: Container,
  { directory, netns, memory, places, filesTarget, map }: Given,
): ShimOptions {
  const { id, config, hostConfig } = container;
  const borrowed = memory?.ofPid === undefined ? undefined : { ofPid: memory.ofPid, target: memory.target };
  return {
    id,
    directory,
    runtime: runtimes.get(hostConfig.Runtime),
    mode: { kind: 'container', rootfs: layers.wholeOverlay(id), netns, memory: borrowed, places, filesTarget },
    map,
    tty: config.Tty,
    openStdin: config.OpenStdin,
    stdinOnce: config.StdinOnce,
    log: logDriverOf(container).shimLog(container),
    cgroupPath: cgroupPathOf(container),
    cgroupBySystemd: runtimeCgroupOf(container).bySystemd,
  };
}
