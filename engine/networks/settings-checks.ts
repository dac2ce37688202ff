import type { SettingsChecks } from '../config/check.ts';
import { checkBridgeName } from './bridge/bridge-link.ts';
import { parseBip } from './subnets.ts';

/** Checks of the network settings that the schema cannot express. */
export const networkSettingsChecks: SettingsChecks = {
  bridge: ({ bridge }) => bridge !== 'none' && checkBridgeName(bridge),
  bip: ({ bip }) => bip !== '' && void parseBip(bip),
};
