import {
  boxCommand,
  forgetBoxCommand,
  forgetNamesCommand,
  namesCommand,
  networkCommand,
  type Command,
} from './commands.ts';

/** A container as the resolver knows it. */
export type Registration = Readonly<{
  containerId: string;
  /** The container is served until this process ends. */
  pid: number;
  /** Path of its network namespace. */
  netns: string;
  /**
   * The networks in which names are looked up, in this order, with its own names there: the first is the answer to
   * reverse queries.
   */
  networks: readonly Readonly<{ id: string; label: string; ip: string; ip6: string; names: readonly string[] }>[];
  /** Aliases of other names, for this container only. */
  links: readonly Readonly<{ alias: string; target: string }>[];
  /** The servers for other names; without any, such queries fail. */
  upstreams: readonly Upstream[];
}>;

/** `inside`: queried from the container's namespace, because the address is one of its own loopback. */
export type Upstream = Readonly<{ ip: string; inside: boolean }>;

/** The commands that make the resolver serve a container, and know its names. */
export function registerCommands(served: Registration): Command[] {
  const { containerId, networks } = served;
  return [
    ...networks.flatMap(({ id, label, ...names }) => [networkCommand(id, label), namesCommand(id, containerId, names)]),
    boxCommand(served),
  ];
}

/** The commands that forget a container. */
export function unregisterCommands(containerId: string, networkIds: readonly string[]): Command[] {
  return [forgetBoxCommand(containerId), ...networkIds.map((id) => forgetNamesCommand(id, containerId))];
}
