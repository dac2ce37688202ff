import type { SettingsChecks } from '../config/check.ts';
import { parseBip, parsePool } from './addresses/subnets.ts';
import { checkBridgeName } from './bridge/bridge-link.ts';

/** Checks of the network settings that the schema cannot express. */
export const networkSettingsChecks: SettingsChecks = {
  bridge: ({ bridge }) => bridge !== 'none' && checkBridgeName(bridge),
  bip: ({ bip }) => bip !== '' && void parseBip(bip),
  'default-address-pools': ({ 'default-address-pools': pools }) => void pools.map(parsePool),
};
