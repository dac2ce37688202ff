import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Database } from '../../../db/database.ts';
import { systemClock } from '../../../lib/clock.ts';
import { Background } from '../../../lib/concurrency/background.ts';
import type { VolumeDriver } from '../../../volumes/driver.ts';
import { VolumeDrivers } from '../../../volumes/drivers.ts';
import { VolumeStore } from '../../../volumes/store.ts';
import type { MountPoint } from '../../store.ts';
import { mountVolumes, unmountVolumes } from './volume-mounts.ts';

const later = async (): Promise<void> => await Promise.resolve();

/** Refuses the first call of each kind in `refused`. */
function driverThatTells(calls: string[], refused: string[]): VolumeDriver {
  const call = async (what: string): Promise<void> => {
    await later();
    calls.push(what);
    const at = refused.indexOf(what);
    if (at !== -1) throw new Error(`refused: ${refused.splice(at, 1)[0]}`);
  };
  return {
    name: 'telling',
    scope: 'local',
    check: () => undefined,
    needsMount: () => false,
    create: later,
    remove: async (_volume, forget) => {
      await later();
      forget();
      return true;
    },
    mount: async ({ name }, id) => {
      await call(`mount ${name} ${id}`);
      return `/mnt/${name}`;
    },
    unmount: async ({ name }, id) => await call(`unmount ${name} ${id}`),
    look: async () => {
      await later();
      return { path: '' };
    },
    reconcile: later,
  };
}

function engineWith(refused: string[] = []) {
  const db = new Database(':memory:');
  const calls: string[] = [];
  const errors: string[] = [];
  const volumes = new VolumeStore(db);
  for (const name of ['a', 'b']) {
    volumes.insert({ name, driver: 'telling', createdAt: systemClock.now(), labels: {}, anonymous: false });
  }
  return {
    background: new Background(systemClock, { error: (_details, message) => void errors.push(message) }),
    calls,
    errors,
    volumes,
    volumeDrivers: new VolumeDrivers(driverThatTells(calls, refused)),
    [Symbol.dispose]: () => db[Symbol.dispose](),
  };
}

function mount(name: string, type: MountPoint['type'] = 'volume'): MountPoint {
  return {
    type,
    name,
    source: `/old/${name}`,
    destination: `/${name}`,
    mode: '',
    writable: true,
    propagation: '',
    copyUp: false,
    anonymous: false,
  };
}

test('a run has its volumes where their driver says', async () => {
  using engine = engineWith();
  const mounts = [mount('a'), mount('x', 'bind'), mount('b'), mount('unknown')];

  const mounted = await mountVolumes(engine, { id: 'c1', mounts });

  assert.deepEqual(
    mounted.map(({ source }) => source),
    ['/mnt/a', '/old/x', '/mnt/b', '/old/unknown'],
  );
  await unmountVolumes(engine, { id: 'c1', mounts }).done;
  assert.deepEqual(engine.calls, ['mount a c1', 'mount b c1', 'unmount a c1', 'unmount b c1']);
});

test('a mount that the driver refuses is the error of the start', async () => {
  using engine = engineWith(['mount b c1']);

  await assert.rejects(mountVolumes(engine, { id: 'c1', mounts: [mount('a'), mount('b')] }), /refused: mount b c1/);
});

test('an unmount that the driver refuses is tried again, and told', async () => {
  using engine = engineWith(['unmount a c1']);

  await unmountVolumes(engine, { id: 'c1', mounts: [mount('a')] }).done;

  assert.deepEqual(engine.calls, ['unmount a c1', 'unmount a c1']);
  assert.deepEqual(engine.errors, ['background work failed: unmount a volume']);
});
