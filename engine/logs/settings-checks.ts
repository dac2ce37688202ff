import type { SettingsChecks } from '../config/check.ts';
import { EngineError } from '../lib/errors.ts';
import { LOG_DRIVERS } from './drivers.ts';
import { logConfigOf } from './log-options.ts';

/** The daemon's log options are checked by the rules for a container that asks for the same. */
export const logSettingsChecks: SettingsChecks = {
  'log-driver': (settings) => {
    const name = settings['log-driver'];
    if (LOG_DRIVERS.includes(name)) return;
    throw new EngineError('invalid', `${LOG_DRIVERS.join(', ')} are the choices, not ${JSON.stringify(name)}`);
  },
  'log-opts': (settings) => {
    if (!LOG_DRIVERS.includes(settings['log-driver'])) return; // reported already
    logConfigOf({}, { logDriver: settings['log-driver'], logOpts: settings['log-opts'] });
  },
};
