import { UsageError } from '../exit-codes.ts';
import type { CreateRequest } from './request.ts';

type Port = { container: string; hostIp: string; hostPort: string };
type Range = readonly [first: number, last: number];

/** `-p`: the ports are exposed and bound. */
export function publish({ config, host }: CreateRequest, list: readonly string[]): void {
  for (const { container, hostIp, hostPort } of list.flatMap(portsOf)) {
    (config.ExposedPorts ??= {})[container] = {};
    ((host.PortBindings ??= {})[container] ??= []).push({ HostIp: hostIp, HostPort: hostPort });
  }
}

export function expose({ config }: CreateRequest, list: readonly string[]): void {
  for (const text of list) {
    const match = /^(\d+)(?:-(\d+))?(?:\/(tcp|udp|sctp))?$/i.exec(text);
    if (match === null) throw new UsageError(`invalid port "${text}": expected PORT[-PORT][/PROTOCOL]`);
    const range = rangeOf(text, match[1]!, match[2]);
    for (let port = range[0]; port <= range[1]; port += 1) {
      (config.ExposedPorts ??= {})[`${port}/${match[3]?.toLowerCase() ?? 'tcp'}`] = {};
    }
  }
}

/** `[[ip:]host:]container[/protocol]`, or the same as `name=value` words; each port may be a range of as many. */
export function portsOf(text: string): Port[] {
  const spec = text.includes('=') ? longForm(text) : text;
  const match =
    /^(?:(?:(\[[^\]]+\]|[\d.]+|[\da-f]*:[\da-f:]+):)?(?:(\d*)(?:-(\d+))?):)?(\d+)(?:-(\d+))?(?:\/(tcp|udp|sctp))?$/i.exec(
      spec,
    );
  if (match === null) throw new UsageError(`invalid port "${text}": expected [[IP:]PORT:]INSIDE[/PROTOCOL]`);
  const [, ip = '', hostFirst = '', hostLast, first, last, protocol = 'tcp'] = match;
  const inside = rangeOf(text, first!, last);
  const ports: Port[] = [];
  for (let offset = 0; offset <= inside[1] - inside[0]; offset += 1) {
    ports.push({
      container: `${inside[0] + offset}/${protocol.toLowerCase()}`,
      hostIp: ip.replace(/^\[(.*)\]$/, '$1'),
      hostPort: hostPortOf(text, inside, offset, hostFirst, hostLast),
    });
  }
  return ports;
}

function hostPortOf(text: string, inside: Range, offset: number, first: string, last: string | undefined): string {
  if (first === '') return '';
  const outside = rangeOf(text, first, last);
  // One container port with a range of host ports takes any of the range.
  if (inside[0] === inside[1]) return last === undefined ? String(outside[0]) : `${outside[0]}-${outside[1]}`;
  if (outside[1] - outside[0] !== inside[1] - inside[0]) {
    throw new UsageError(`invalid ranges of ports "${text}": they differ in length`);
  }
  return String(outside[0] + offset);
}

function rangeOf(text: string, first: string, last = first): Range {
  const range = [Number(first), Number(last)] as const;
  if (range[0] > range[1] || range[0] < 0 || range[1] > 65_535)
    throw new UsageError(`invalid range of ports "${text}"`);
  return range;
}

function longForm(text: string): string {
  const words = Object.fromEntries(text.split(',').map((word) => word.split('=', 2))) as Record<
    string,
    string | undefined
  >;
  const { target, published = '', protocol = 'tcp', ...others } = words;
  delete others['mode']; // of services
  if (target === undefined || Object.keys(others).length > 0) {
    throw new UsageError(`invalid port "${text}": expected target=PORT,published=PORT,protocol=PROTOCOL`);
  }
  return `${published === '' ? '' : `${published}:`}${target}/${protocol}`;
}

export function setAddress(
  { endpoint }: CreateRequest,
  address: { IPv4Address?: string; IPv6Address?: string; LinkLocalIPs?: string[] },
): void {
  endpoint.IPAMConfig = { ...endpoint.IPAMConfig, ...address };
}

/** A link without an alias has the container's name for one. */
export function setLinks({ host }: CreateRequest, links: readonly string[]): void {
  host.Links = links.map((link) => (link.includes(':') ? link : `${link}:${link}`));
}
