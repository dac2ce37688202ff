import { EngineError } from '../lib/errors.ts';
import type { LogDriver } from './driver.ts';
import { awslogs } from './drivers/awslogs/awslogs.ts';
import { fluentd } from './drivers/fluentd/fluentd.ts';
import { gelf } from './drivers/gelf.ts';
import { journald } from './drivers/journald.ts';
import { jsonFile } from './drivers/json-file.ts';
import { local } from './drivers/local.ts';
import { none } from './drivers/none.ts';
import { splunk } from './drivers/splunk/splunk.ts';
import { syslog } from './drivers/syslog/syslog.ts';
import type { LoggedContainer } from './logged-container.ts';

const drivers = new Map(
  [awslogs, fluentd, gelf, journald, jsonFile, local, none, splunk, syslog].map((driver) => [driver.name, driver]),
);

export const LOG_DRIVERS: readonly string[] = [...drivers.keys()];

/** Throws `invalid` for an unknown name, in the words of dockerd, which looks for a plugin for 15 seconds. */
export function logDriver(name: string): LogDriver {
  const found = drivers.get(name);
  if (found === undefined)
    throw new EngineError(
      'invalid',
      `error looking up logging plugin ${name}: plugin ${JSON.stringify(name)} not found`,
    );
  return found;
}

/** The driver that a container was created with. */
export function logDriverOf({ hostConfig }: LoggedContainer): LogDriver {
  return logDriver(hostConfig.LogConfig.Type);
}
