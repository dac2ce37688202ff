import type { HostConfig, HostConfigBody } from '../containers/settings/host-config-schema.ts';
import { EngineError } from '../lib/errors.ts';
import type { LogOptions } from './driver.ts';
import { logDriver } from './drivers.ts';
import { bytesOf } from './size.ts';

type Defaults = Readonly<{ logDriver: string; logOpts: LogOptions }>;

/** Of every driver: what happens when it is slow. Ours never is, so both modes are the same. */
const DELIVERY = ['mode', 'max-buffer-size'];

/** The log driver and its options, those of the daemon where the client names no driver. Throws `invalid`. */
export function logConfigOf({ LogConfig }: HostConfigBody, defaults: Defaults): HostConfig['LogConfig'] {
  const named = LogConfig?.Type ?? '';
  const driver = logDriver(named === '' ? defaults.logDriver : named);
  const Config = named === '' ? { ...defaults.logOpts, ...LogConfig?.Config } : (LogConfig?.Config ?? {});
  for (const key of Object.keys(Config)) {
    if (driver.options.includes(key) || DELIVERY.includes(key)) continue;
    throw new EngineError('invalid', `unknown log opt '${key}' for ${driver.name} log driver`);
  }
  checkDelivery(Config);
  driver.check?.(Config);
  return { Type: driver.name, Config };
}

function checkDelivery(options: LogOptions): void {
  const { mode = '', 'max-buffer-size': size } = options;
  if (!['', 'blocking', 'non-blocking'].includes(mode)) {
    throw new EngineError('invalid', `logger: logging mode not supported: ${mode}`);
  }
  if (size === undefined) return;
  if (mode !== 'non-blocking') {
    throw new EngineError('invalid', "logger: max-buffer-size option is only supported with 'mode=non-blocking'");
  }
  bytesOf('max-buffer-size', size);
}
