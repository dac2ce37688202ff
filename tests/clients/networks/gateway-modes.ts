/** A network with options of bridges, and how its container is reached. */
export type ModeRow = Readonly<{
  title: string;
  /** Without the prefix `com.docker.network.bridge.`. */
  options: Readonly<Record<string, string>>;
  isInternal?: boolean;
  /** Without IPv4. */
  isSixAlone?: boolean;
  /** The error of the creation, or the facts about a container that publishes port 80 as 8101 and listens on 99 too. */
  expected: string | Facts;
  /** A deliberate difference from dockerd 28.5. */
  chosen?: string;
}>;

/** `80` and `99` at the container's address, `port` at the machine's; `six` is IPv6. */
type Facts = Readonly<{
  addresses: string;
  ports: string;
  /** The bridge's own addresses. */
  bridge: string;
  /** Reached from the machine. */
  host: string;
  /** Reached from another machine. */
  out: string;
  /** Reached from another machine, over the interface `up1`. */
  trusted: string;
  /** Reached from a container of another network. */
  beside: string;
  /** Reached by the container itself, on the other machine. */
  leaves: string;
}>;

const ADDRESSES = '10.77.128.2 by 10.77.128.1, fd00:77::2 by fd00:77::1';
const BRIDGE = '10.77.128.1/24 fd00:77::1/64';

export const MODE_ROWS: readonly ModeRow[] = [
  {
    title: 'nat',
    options: { gateway_mode_ipv4: 'nat' },
    expected: {
      addresses: ADDRESSES,
      ports: '0.0.0.0 8101, :: 8101',
      bridge: BRIDGE,
      host: '80, 99, six 80, six 99, port',
      out: 'port, six port',
      trusted: '',
      beside: '',
      leaves: 'ping, six ping',
    },
  },
  {
    title: 'routed',
    options: { gateway_mode_ipv4: 'routed', gateway_mode_ipv6: 'routed' },
    expected: {
      addresses: ADDRESSES,
      ports: '0.0.0.0 , :: ',
      bridge: BRIDGE,
      host: '80, 99, six 80, six 99',
      out: '80, six 80, ping, six ping',
      trusted: '80',
      beside: '80',
      leaves: 'ping, six ping',
    },
  },
  {
    title: 'nat-unprotected',
    options: { gateway_mode_ipv4: 'nat-unprotected', gateway_mode_ipv6: 'nat-unprotected' },
    expected: {
      addresses: ADDRESSES,
      ports: '0.0.0.0 8101, :: 8101',
      bridge: BRIDGE,
      host: '80, 99, six 80, six 99, port',
      out: '80, 99, six 80, six 99, port, six port, ping, six ping',
      trusted: '80, 99',
      beside: '',
      leaves: 'ping, six ping',
    },
  },
  {
    title: 'IPv6 routed',
    options: { gateway_mode_ipv6: 'routed' },
    expected: {
      addresses: ADDRESSES,
      ports: '0.0.0.0 8101, :: ',
      bridge: BRIDGE,
      host: '80, 99, six 80, six 99, port',
      out: 'six 80, port, six ping',
      trusted: '',
      beside: '',
      leaves: 'ping, six ping',
    },
  },
  {
    title: 'isolated',
    options: { gateway_mode_ipv4: 'isolated' },
    expected: "gateway mode 'isolated' can only be used for an internal network",
  },
  {
    title: 'isolated, internal',
    options: { gateway_mode_ipv4: 'isolated', gateway_mode_ipv6: 'isolated' },
    isInternal: true,
    expected: {
      addresses: '10.77.128.1 by , fd00:77::1 by ',
      ports: '',
      bridge: '',
      host: '',
      out: '',
      trusted: '',
      beside: '',
      leaves: '',
    },
  },
  {
    title: 'routed, internal',
    options: { gateway_mode_ipv4: 'routed' },
    isInternal: true,
    expected: {
      addresses: ADDRESSES,
      ports: '',
      bridge: BRIDGE,
      host: '80, 99, six 80, six 99',
      out: '',
      trusted: '',
      beside: '',
      leaves: '',
    },
    chosen: 'the address of the bridge is shown as the gateway, as in dockerd 20.10',
  },
  {
    title: 'no address of IPv4',
    options: { inhibit_ipv4: 'true' },
    expected: {
      addresses: ADDRESSES,
      ports: '0.0.0.0 8101, :: 8101',
      bridge: 'fd00:77::1/64',
      host: 'six 80, six 99',
      out: 'six port',
      trusted: '',
      beside: '',
      leaves: 'six ping',
    },
  },
  {
    title: 'trusted interfaces',
    options: { trusted_host_interfaces: 'up1:nosuch' },
    expected: {
      addresses: ADDRESSES,
      ports: '0.0.0.0 8101, :: 8101',
      bridge: BRIDGE,
      host: '80, 99, six 80, six 99, port',
      out: 'port, six port',
      trusted: '80',
      beside: '',
      leaves: 'ping, six ping',
    },
  },
  {
    title: 'nat, without IPv4',
    options: {},
    isSixAlone: true,
    expected: {
      addresses: ' by , fd00:77::2 by fd00:77::1',
      ports: ':: 8101',
      bridge: 'fd00:77::1/64',
      host: 'six 80, six 99',
      out: 'six port',
      trusted: '',
      beside: '',
      leaves: 'six ping',
    },
  },
  {
    title: 'an unknown mode',
    options: { gateway_mode_ipv4: 'odd' },
    expected: 'failed to parse com.docker.network.bridge.gateway_mode_ipv4 value: odd (unknown gateway mode odd)',
  },
];
