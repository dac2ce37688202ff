import type { SettingsChecks } from '../config/check.ts';
import { parseBip, parseFixedCidrV6, parsePool } from './addresses/subnets.ts';
import { checkBridgeName } from './bridge/bridge-link.ts';

/** Checks of the network settings that the schema cannot express. */
export const networkSettingsChecks: SettingsChecks = {
  bridge: ({ bridge }) => bridge !== 'none' && checkBridgeName(bridge),
  bip: ({ bip }) => bip !== '' && void parseBip(bip),
  'fixed-cidr-v6': ({ ipv6, 'fixed-cidr-v6': range }) => (ipv6 || range !== '') && void parseFixedCidrV6(range),
  'default-address-pools': ({ 'default-address-pools': pools }) => void pools.map(parsePool),
};
