import type { Container } from '../containers/store.ts';
import { EngineError } from '../lib/errors.ts';
import type { LogDriver } from './driver.ts';
import { jsonFile } from './json-file.ts';
import { none } from './none.ts';

const drivers = new Map([jsonFile, none].map((driver) => [driver.name, driver]));

export const LOG_DRIVERS: readonly string[] = [...drivers.keys()];

/** Throws `invalid` for a name that no driver has. */
export function logDriver(name: string): LogDriver {
  const found = drivers.get(name);
  if (found === undefined) throw new EngineError('invalid', `logger: no log driver named '${name}' is registered`);
  return found;
}

/** The driver that a container was created with. */
export function logDriverOf({ hostConfig }: Container): LogDriver {
  return logDriver(hostConfig.LogConfig.Type);
}
