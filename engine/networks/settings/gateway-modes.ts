import { refuseIf } from '../../lib/errors.ts';
import type { Family } from '../../lib/notations/ip-address.ts';
import { optionOf, unreadable, type Options } from './options.ts';

/** `nat-unprotected`: all ports are reached from outside; `routed`: published ones, without translation; `isolated`: none. */
const GATEWAY_MODES = ['nat', 'nat-unprotected', 'routed', 'isolated'] as const;
type GatewayMode = (typeof GATEWAY_MODES)[number];

/** The way between the containers of a bridge and the world, by family. */
export type GatewayModes = Readonly<Record<Family, GatewayMode>>;

/** Throws `invalid` for unknown modes. */
export function gatewayModes(options: Options): GatewayModes {
  return { 4: modeOf(options, 4), 6: modeOf(options, 6) };
}

function modeOf(options: Options, family: Family): GatewayMode {
  const found = optionOf(options, `bridge.gateway_mode_ipv${family}`);
  if (found === undefined || found.value === '') return 'nat';
  const mode = GATEWAY_MODES.find((one) => one === found.value);
  if (mode === undefined) throw unreadable(found, `unknown gateway mode ${found.value}`);
  return mode;
}

/** Throws `invalid` for a bridge without an address that is to lead out. */
export function checkGatewayModes(modes: GatewayModes, isInternal: boolean): void {
  const isIsolated = Object.values(modes).includes('isolated');
  refuseIf(isIsolated && !isInternal, "gateway mode 'isolated' can only be used for an internal network");
}

/** The machine's interfaces from which published ports are reached at the containers' own addresses. Throws `invalid`. */
export function trustedInterfaces(options: Options): string[] {
  const found = optionOf(options, 'bridge.trusted_host_interfaces');
  if (found === undefined) return [];
  const names = found.value.split(':').filter((name) => name !== '');
  const wrong = names.find((name) => !/^[^\s/"]{1,15}$/.test(name));
  if (wrong !== undefined) throw unreadable(found, `${wrong} is not the name of an interface`);
  return names;
}

/** Whether both networks lead to published ports in one way, so that the ports can move from one to the other. */
export function publishAlike(one: Options, other: Options): boolean {
  const [ways, others] = [one, other].map((options) => [gatewayModes(options), trustedInterfaces(options)]);
  return JSON.stringify(ways) === JSON.stringify(others);
}
