import type { SettingsChecks } from '../config/check.ts';
import { checkBridgeName } from './bridge/bridge-link.ts';
import { parseBip } from './subnets.ts';

/** What the schema of the settings cannot say of the networks'. */
export const networkSettingsChecks: SettingsChecks = {
  bridge: ({ bridge }) => bridge !== 'none' && checkBridgeName(bridge),
  bip: ({ bip }) => bip !== '' && void parseBip(bip),
};
