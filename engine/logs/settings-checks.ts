import type { SettingsChecks } from '../config/check.ts';
import { logConfigOf } from './log-options.ts';

/** The daemon's log options are checked by the rules for a container that asks for the same. */
export const logSettingsChecks: SettingsChecks = {
  'log-opts': (settings) => {
    logConfigOf({}, { logDriver: settings['log-driver'], logOpts: settings['log-opts'] });
  },
};
