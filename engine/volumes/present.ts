import type { Engine } from '../engine.ts';
import type { VolumeWire } from './schema.ts';
import type { Volume } from './store.ts';

type Needs = Pick<Engine, 'volumeDrivers'>;

/** Undefined if the driver does not know the volume any more. */
export async function presentVolume(engine: Needs, volume: Volume): Promise<VolumeWire | undefined> {
  const facts = await engine.volumeDrivers.find(volume.driver).look(volume);
  if (facts === undefined) return undefined;
  const { path, status } = facts;
  return { ...wire(volume, path, scopeOf(engine, volume)), ...(status !== undefined && { Status: status }) };
}

export function scopeOf({ volumeDrivers }: Needs, { driver }: Volume): string {
  return volumeDrivers.find(driver).scope;
}

export function wire(
  { name, driver, createdAt, labels, options }: Volume,
  mountpoint: string,
  scope: string,
): VolumeWire {
  return {
    CreatedAt: createdAt.round('second').toString(),
    Driver: driver,
    Labels: Object.keys(labels).length === 0 ? null : { ...labels },
    Mountpoint: mountpoint,
    Name: name,
    Options: options === undefined ? null : { ...options },
    Scope: scope,
  };
}
