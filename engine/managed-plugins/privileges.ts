import { isDeepStrictEqual } from 'node:util';

import { EngineError } from '../lib/errors.ts';
import { privilegesOf, type PluginConfig } from './plugin-config.ts';
import type { Granted } from './schema.ts';

/** Throws `invalid` unless the user has granted just what the plugin asks for. */
export function checkGranted(config: PluginConfig, granted: Granted): void {
  if (!isDeepStrictEqual(inOrder(privilegesOf(config)), inOrder(granted)))
    throw new EngineError('invalid', 'incorrect privileges: the plugin asks for others than were granted');
}

function inOrder(privileges: Granted): [name: string, value: readonly string[]][] {
  return privileges
    .map(({ Name, Value }): [string, readonly string[]] => [Name, (Value ?? []).toSorted()])
    .toSorted(([a, x], [b, y]) => (`${a} ${x.join(' ')}` < `${b} ${y.join(' ')}` ? -1 : 1));
}
