import * as networks from '@gantry/client/networks.ts';

import { command, MANY, type Given } from '../command-line/command.ts';
import { filtersOf, mapOf } from '../command-line/values.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';
import { printList } from '../output/format.ts';
import { shortId, timeText } from '../output/human.ts';
import { labelsText } from '../output/labels.ts';
import { LIST_FLAGS, NO_TRUNC, OBJECT_FORMAT, wantsIds } from '../output/list-flags.ts';
import { printInspected } from '../system/inspect.ts';

const UNKNOWN = 'API 1.24 does not have it';
const CREATE_FLAGS = {
  attachable: { kind: 'boolean', help: '', refused: UNKNOWN },
  'aux-address': { kind: 'list', value: 'NAME=ADDRESS', help: 'A reserved address' },
  driver: { kind: 'text', short: 'd', initial: 'bridge', help: 'Its driver' },
  gateway: { kind: 'list', value: 'ADDRESS', help: 'The gateway of a subnet' },
  ingress: { kind: 'boolean', help: '', refused: UNKNOWN },
  internal: { kind: 'boolean', help: 'No access to other networks' },
  'ip-range': { kind: 'list', value: 'SUBNET', help: 'The range of addresses for containers' },
  'ipam-driver': { kind: 'text', initial: 'default', help: 'The driver of its addresses' },
  'ipam-opt': { kind: 'list', value: 'NAME=VALUE', help: 'An option of that driver' },
  ipv6: { kind: 'boolean', help: 'With IPv6' },
  label: { kind: 'list', value: 'NAME=VALUE', help: 'A label' },
  opt: { kind: 'list', short: 'o', value: 'NAME=VALUE', help: 'An option of the driver' },
  scope: { kind: 'text', help: '', refused: UNKNOWN },
  subnet: { kind: 'list', value: 'SUBNET', help: 'A subnet, such as 10.1.0.0/16' },
} as const;

export const createNetwork = command({
  words: 'NAME',
  count: [1, 1],
  flags: CREATE_FLAGS,
  examples: ['gantry network create --subnet 10.1.0.0/16 back'],
  run: async ({ connection }, [Name = ''], flags) => {
    const { Id, Warning } = await networks.createNetwork(connection, {
      Name,
      CheckDuplicate: true,
      Driver: flags.driver!,
      Internal: flags.internal,
      EnableIPv6: flags.ipv6,
      IPAM: { Driver: flags['ipam-driver']!, Options: mapOf(flags['ipam-opt']), Config: subnetsOf(flags) },
      Options: mapOf(flags.opt),
      Labels: mapOf(flags.label),
    });
    if (Warning) console.error(`WARNING: ${Warning}`);
    console.log(Id);
  },
});

/** The first gateway and range belong to the first subnet, the second to the second. */
function subnetsOf(flags: Given<typeof CREATE_FLAGS>): { Subnet?: string; IPRange?: string; Gateway?: string }[] {
  const { subnet, gateway, 'ip-range': ranges, 'aux-address': others } = flags;
  if (subnet.length < Math.max(gateway.length, ranges.length) || (others.length > 0 && subnet.length === 0)) {
    throw new UsageError('every gateway, range and further address needs its --subnet');
  }
  return subnet.map((Subnet, at) => ({
    Subnet,
    ...(gateway[at] !== undefined && { Gateway: gateway[at] }),
    ...(ranges[at] !== undefined && { IPRange: ranges[at] }),
    ...(at === 0 && others.length > 0 && { AuxiliaryAddresses: mapOf(others) }),
  }));
}

const TITLES = {
  ID: 'NETWORK ID',
  Name: 'NAME',
  Driver: 'DRIVER',
  Scope: 'SCOPE',
  IPv6: 'IPV6',
  Internal: 'INTERNAL',
  Labels: 'LABELS',
  CreatedAt: 'CREATED AT',
};

export const listNetworks = command({
  words: '',
  count: [0, 0],
  flags: { ...LIST_FLAGS, 'no-trunc': NO_TRUNC },
  about: 'Fields of templates: .ID .Name .Driver .Scope .IPv6 .Internal .Labels .CreatedAt, and .Label "NAME".',
  run: async ({ connection }, _words, flags) => {
    const listed = await networks.listNetworks(connection, { filters: filtersOf(flags.filter) });
    const sorted = listed.toSorted((a, b) => (a.Name < b.Name ? -1 : 1));
    const idOf = (id: string): string => (flags['no-trunc'] ? id : shortId(id));
    if (wantsIds(flags)) {
      for (const { Id } of sorted) console.log(idOf(Id));
      return;
    }
    const rows = sorted.map(({ Id, Name, Driver, Scope, EnableIPv6, Internal, Labels, Created }) => ({
      ID: idOf(Id),
      Name,
      Driver,
      Scope,
      IPv6: String(EnableIPv6),
      Internal: String(Internal),
      Labels: labelsText(Labels),
      CreatedAt: timeText(Date.parse(Created) / 1000, /\.\d*[1-9]/.exec(Created)?.[0]),
      Label: (label: string) => Labels[label] ?? '',
    }));
    await printList({ titles: TITLES, columns: ['ID', 'Name', 'Driver', 'Scope'], rows }, flags.format);
  },
});

export const inspectNetworks = command({
  words: 'NETWORK [NETWORK...]',
  count: [1, MANY],
  flags: {
    ...OBJECT_FORMAT,
    verbose: { kind: 'boolean', short: 'v', help: 'Also the facts of a cluster: none without one' },
  },
  offers: 'network',
  run: async ({ connection }, refs, { format }) => {
    await printInspected(refs, async (ref) => await networks.inspectNetwork(connection, ref), format);
  },
});

export const connectNetwork = command({
  words: 'NETWORK CONTAINER',
  count: [2, 2],
  flags: {
    alias: { kind: 'list', value: 'NAME', help: 'A further name in the network' },
    ip: { kind: 'text', value: 'ADDRESS', help: 'IPv4 address' },
    ip6: { kind: 'text', value: 'ADDRESS', help: 'IPv6 address' },
    link: { kind: 'list', value: 'CONTAINER[:ALIAS]', help: 'Link to another container, under an alias' },
    'link-local-ip': { kind: 'list', value: 'ADDRESS', help: 'A link-local address' },
  },
  offers: 'network',
  run: async ({ connection }, [network = '', container = ''], flags) => {
    const addresses = {
      ...(flags.ip !== undefined && { IPv4Address: flags.ip }),
      ...(flags.ip6 !== undefined && { IPv6Address: flags.ip6 }),
      ...(flags['link-local-ip'].length > 0 && { LinkLocalIPs: flags['link-local-ip'] }),
    };
    await networks.connectNetwork(connection, network, container, {
      ...(Object.keys(addresses).length > 0 && { IPAMConfig: addresses }),
      ...(flags.link.length > 0 && {
        Links: flags.link.map((link) => (link.includes(':') ? link : `${link}:${link}`)),
      }),
      ...(flags.alias.length > 0 && { Aliases: flags.alias }),
    });
  },
});

export const disconnectNetwork = command({
  words: 'NETWORK CONTAINER',
  count: [2, 2],
  flags: { force: { kind: 'boolean', short: 'f', help: 'Also a container that does not answer' } },
  offers: 'network',
  run: async ({ connection }, [network = '', container = ''], { force }) => {
    await networks.disconnectNetwork(connection, network, container, force);
  },
});

export const removeNetworks = command({
  words: 'NETWORK [NETWORK...]',
  count: [1, MANY],
  flags: { force: { kind: 'boolean', short: 'f', help: 'A missing one is not an error' } },
  offers: 'network',
  run: async ({ connection }, refs, { force }) => {
    await each(
      refs,
      async (ref) => {
        await networks.removeNetwork(connection, ref);
        console.log(ref);
      },
      { missingIsFine: force },
    );
  },
});
