import { DNS_PORT } from './rules.ts';

/** A container as the resolver knows it. */
export type Served = Readonly<{
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
export function servedLines({ containerId, pid, netns, networks, links, upstreams }: Served): string[] {
  const box = [
    ...['box', containerId, String(pid), netns, String(DNS_PORT)],
    list(networks.map(({ id }) => id)),
    list(upstreams.map(({ ip, inside }) => `${inside ? 'c' : 'h'}:${ip}`)),
    list(links.filter(({ alias, target }) => isName(alias) && isName(target)).map(linkWord)),
    '0',
  ];
  return [
    ...networks.flatMap(({ id, label, ip, ip6, names }) => [
      `net ${id} ${label.replaceAll(/\s/g, '_').toLowerCase()}`,
      `name ${id} ${containerId} ${ip || '-'} ${ip6 || '-'} ${names.filter(isName).join(' ')}`,
    ]),
    box.join(' '),
  ];
}

/** The commands that forget a container. */
export function forgottenLines(containerId: string, networkIds: readonly string[]): string[] {
  return [`unbox ${containerId}`, ...networkIds.map((id) => unnamedLine(containerId, id))];
}

/** The command that forgets a container's names in a network. */
export function unnamedLine(containerId: string, networkId: string): string {
  return `unname ${networkId} ${containerId}`;
}

function list(words: readonly string[]): string {
  return words.length === 0 ? '-' : words.join(',');
}

function linkWord({ alias, target }: { alias: string; target: string }): string {
  return `${alias.toLowerCase()}=${target.toLowerCase()}`;
}

/** Other names cannot be queried: the protocol separates words by blanks, and lists by commas. */
function isName(text: string): boolean {
  return /^[^\s,=]{1,253}$/.test(text);
}
