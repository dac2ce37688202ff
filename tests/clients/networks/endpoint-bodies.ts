/** A creation with a NetworkingConfig, and why its outcome may differ from dockerd's. */
export type EndpointBody = Readonly<{
  /** Settings in the networks `one` (10.91.0.0/24), `two` (10.92.0.0/24) and `free`, whose subnet was chosen. */
  EndpointsConfig?: unknown;
  /** Default: `one`. */
  mode?: string;
  /** Instead of a NetworkingConfig with the endpoints. */
  whole?: unknown;
  /** Fields of the container's Config. */
  config?: Readonly<Record<string, unknown>>;
  chosen?: string;
}>;

const atOnce = 'refused at once (dockerd: at the start)';
const several = 'several networks at once (dockerd: one)';
const one = (settings: unknown): EndpointBody => ({ EndpointsConfig: { one: settings } });
const ip = (IPAMConfig: unknown): EndpointBody => one({ IPAMConfig });

/** Bodies for POST /containers/create, by what they are about. */
export const endpointBodies: Readonly<Record<string, EndpointBody>> = {
  'no config at all': { whole: undefined },
  'a config that is null': { whole: null },
  'a config that is empty': { whole: {} },
  'a config that is a list': { whole: [] },
  'a config that is a text': { whole: 'one' },
  'endpoints that are null': { EndpointsConfig: null },
  'endpoints that are a list': { EndpointsConfig: [] },
  'no endpoint': { EndpointsConfig: {} },
  'an endpoint that is null': one(null),
  'an endpoint that is empty': one({}),
  'an endpoint that is a text': one('x'),
  'an endpoint that is a number': one(5),
  'an IPAM that is null': ip(null),
  'an IPAM that is empty': ip({}),
  'an IPAM that is a text': ip('10.91.0.7'),
  'an address': ip({ IPv4Address: '10.91.0.7' }),
  'an empty address': ip({ IPv4Address: '' }),
  'an address that is a number': ip({ IPv4Address: 5 }),
  'an invalid address': ip({ IPv4Address: 'x' }),
  'an address with a length': ip({ IPv4Address: '10.91.0.7/24' }),
  'an address of IPv6 as one of IPv4': ip({ IPv4Address: 'fd00::7' }),
  'an address outside of the subnet': { ...ip({ IPv4Address: '10.99.0.7' }), chosen: atOnce },
  'the address of the gateway': ip({ IPv4Address: '10.91.0.1' }),
  'the broadcast address': ip({ IPv4Address: '10.91.0.255' }),
  'an address in a network whose subnet was chosen': {
    EndpointsConfig: { free: { IPAMConfig: { IPv4Address: '10.91.0.7' } } },
    mode: 'free',
    chosen: atOnce,
  },
  'an address on the default bridge': {
    EndpointsConfig: { bridge: { IPAMConfig: { IPv4Address: '172.17.0.9' } } },
    mode: 'bridge',
    chosen: atOnce,
  },
  'an address of IPv6 in a network without it': { ...ip({ IPv6Address: 'fd00::7' }), chosen: atOnce },
  'an invalid address of IPv6': ip({ IPv6Address: 'x' }),
  'a link-local address': ip({ LinkLocalIPs: ['169.254.9.9'] }),
  'an invalid link-local address': { ...ip({ LinkLocalIPs: ['x'] }), chosen: atOnce },
  'a link-local address on the default bridge': {
    EndpointsConfig: { bridge: { IPAMConfig: { LinkLocalIPs: ['169.254.9.9'] } } },
    mode: 'bridge',
  },
  ...Object.fromEntries(
    ['bridge', 'none', 'host'].map((mode) => [
      `an address that is not link-local on ${mode}`,
      { EndpointsConfig: { [mode]: { IPAMConfig: { LinkLocalIPs: ['10.0.0.5'] } } }, mode, chosen: atOnce },
    ]),
  ),
  'link-local addresses that are a text': ip({ LinkLocalIPs: '169.254.9.9' }),
  aliases: { ...one({ Aliases: ['a', 'b', 'a'] }), chosen: 'each once' },
  'an empty alias': one({ Aliases: [''] }),
  'aliases that are a text': one({ Aliases: 'a' }),
  'aliases that hold a number': one({ Aliases: [1] }),
  'aliases on the default bridge': { EndpointsConfig: { bridge: { Aliases: ['a'] } }, mode: 'bridge', chosen: atOnce },
  'aliases on the host network': { EndpointsConfig: { host: { Aliases: ['a'] } }, mode: 'host', chosen: atOnce },
  'a link': one({ Links: ['other:alias'] }),
  'a link to an unknown container': one({ Links: ['nobody:alias'] }),
  'a link of a wrong form': { ...one({ Links: ['a:b:c'] }), chosen: atOnce },
  'links that are a text': one({ Links: 'other' }),
  'a MAC address': one({ MacAddress: '02:42:0a:5b:00:63' }),
  'an invalid MAC address': one({ MacAddress: 'x' }),
  'a MAC address here and another in the config': {
    ...one({ MacAddress: '02:42:0a:5b:00:63' }),
    config: { MacAddress: '02:42:0a:5b:00:64' },
  },
  'driver options': one({ DriverOpts: { 'com.example': 'x' } }),
  'driver options that are a text': one({ DriverOpts: 'x' }),
  'driver options that hold a number': one({ DriverOpts: { a: 1 } }),
  'what an inspect shows': {
    ...one({
      NetworkID: 'made-up',
      EndpointID: 'made-up',
      Gateway: '1.2.3.4',
      IPAddress: '1.2.3.5',
      IPPrefixLen: 7,
      GlobalIPv6Address: 'fd00::1',
    }),
    chosen: 'what only an inspect shows is passed over',
  },
  'a prefix length that is a text': {
    ...one({ IPPrefixLen: '7' }),
    chosen: 'what only an inspect shows is passed over',
  },
  'fields of newer versions': one({ GwPriority: 5, DNSNames: ['x'] }),
  'unknown fields': one({ Colour: 'red' }),
  'an unknown network': { EndpointsConfig: { nowhere: {} } },
  'an unknown network, and its mode': { EndpointsConfig: { nowhere: {} }, mode: 'nowhere' },
  'a network without a name': { EndpointsConfig: { '': {} }, chosen: atOnce },
  'an endpoint of another network than the mode': { EndpointsConfig: { two: {} } },
  'two networks': { EndpointsConfig: { one: {}, two: {} }, chosen: several },
  'two networks and a third mode': { EndpointsConfig: { one: {}, two: {} }, mode: 'free', chosen: several },
  'a network beside the host': { EndpointsConfig: { one: {} }, mode: 'host', chosen: atOnce },
  'a network beside none': { EndpointsConfig: { one: {} }, mode: 'none', chosen: 'refused at once (dockerd joins it)' },
  'a network beside that of a container': {
    EndpointsConfig: { one: {} },
    mode: 'container:other',
    chosen: 'refused at once (dockerd passes over it)',
  },
  'a network of the default mode': { EndpointsConfig: { one: {} }, mode: 'default' },
  'a network without a mode': { EndpointsConfig: { one: {} }, mode: '' },
  'a network with networking disabled': { EndpointsConfig: { one: {} }, config: { NetworkDisabled: true } },
};
