import type { Engine } from '../engine.ts';
import { hasCode } from '../lib/errors.ts';
import { bytesBelow } from '../trees/size.ts';
import type { Volume } from './store.ts';

/** Whether the files of a volume are the engine's own: no mount of something else, and none of a plugin. */
export function isPlainLocal({ driver, options }: Volume): boolean {
  return driver === 'local' && Object.keys(options ?? {}).length === 0;
}

/** The bytes of a volume's files; −1 if it is being removed. */
export async function volumeBytes({ volumeDrivers }: Pick<Engine, 'volumeDrivers'>, volume: Volume): Promise<number> {
  const facts = await volumeDrivers.find(volume.driver).look(volume);
  if (facts === undefined || facts.path === '') return -1;
  try {
    return await bytesBelow(facts.path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return -1;
    throw error;
  }
}
