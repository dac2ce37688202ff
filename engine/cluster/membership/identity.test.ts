import assert from 'node:assert/strict';
import fs, { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { MemberFolder, type Identity } from './identity.ts';

/** More than any of these takes. */
const MAX_STEPS = 60;

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const KEYS = { key: 'KEY OF NODE', peer: 'KEY OF PEER', data: 'KEY OF DATA' };
const IDENTITY: Identity = {
  version: 1,
  nodeId: 'one',
  clusterId: 'cluster',
  role: 'manager',
  certificate: 'certificate',
  key: KEYS.key,
  root: 'root',
  listen: '10.0.0.1:2377',
  advertise: '10.0.0.1:2377',
  managers: [],
};
const RENEWED: Identity = { ...IDENTITY, certificate: 'renewed', key: 'KEY OF NODE, RENEWED' };

class Place implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), 'gantry-member-'));

  folder(at = 'whole'): MemberFolder {
    return new MemberFolder({ dataRoot: join(this.root, at), execRoot: join(this.root, at, 'exec') });
  }

  /** The folder of a manager; `unlockKey` seals it. */
  made(unlockKey?: Buffer): MemberFolder {
    const folder = this.folder();
    folder.write(IDENTITY);
    folder.writePeers({ certificate: 'peer', key: KEYS.peer, ca: 'ca' });
    folder.writeDataKey(Buffer.from(KEYS.data));
    if (unlockKey !== undefined) folder.seal(unlockKey);
    return folder;
  }

  /** Names of the keys that stand somewhere on the disk. */
  plain(at = 'whole'): string[] {
    const files = readdirSync(join(this.root, at, 'cluster'), { recursive: true, withFileTypes: true });
    const texts = files.filter((file) => file.isFile()).map((file) => readFileSync(join(file.parentPath, file.name)));
    return Object.values(KEYS).filter((key) => texts.some((text) => text.includes(key)));
  }

  /** The key that etcd's peers read. */
  peerKey(at = 'whole'): string {
    const path = join(this.root, at, 'cluster/peers/key.pem');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true });
  }
}

suite('the keys of a manager on its disk', () => {
  test('sealed keys are in no file of the disk, and etcd reads its key', () => {
    using place = new Place();
    const folder = place.made();
    assert.deepEqual(place.plain(), Object.values(KEYS));

    folder.seal(OLD);

    assert.deepEqual([place.plain(), place.peerKey()], [[], KEYS.peer]);
    assert.equal(folder.read()?.key, KEYS.key);
    assert.equal(folder.readDataKey()?.toString(), KEYS.data);
  });

  test('a locked folder opens by its key alone, and is sealed for later keys too', () => {
    using place = new Place();
    place.made(OLD);
    const folder = place.folder();
    folder.settle();

    assert.deepEqual([folder.isLocked, folder.read()?.key, place.peerKey()], [true, '', '']);
    for (const wrong of [NEW, Buffer.alloc(0), OLD.subarray(1)]) assert.equal(folder.unlock(wrong), undefined);
    assert.deepEqual(folder.unlock(OLD), IDENTITY);
    folder.write(RENEWED);
    assert.deepEqual([folder.isLocked, place.plain(), place.peerKey()], [false, [], KEYS.peer]);
    assert.equal(place.folder().unlock(OLD)?.certificate, 'renewed');
  });

  test('a rotated key takes the place of the old one', () => {
    using place = new Place();
    place.made(OLD).seal(NEW);

    assert.equal(place.folder().unlock(OLD), undefined);
    assert.deepEqual(place.folder().unlock(NEW), IDENTITY);
  });

  test('keys are on the disk again after the end of the seal', () => {
    using place = new Place();
    place.made(OLD).unseal();

    const folder = place.folder();
    assert.deepEqual([folder.isLocked, folder.read(), place.peerKey()], [false, IDENTITY, KEYS.peer]);
    assert.equal(folder.readDataKey()?.toString(), KEYS.data);
    assert.equal(folder.unlock(OLD), undefined);
  });

  test('a manager that ends leaves no key in memory, and a start of etcd has it again', () => {
    using place = new Place();
    const folder = place.made(OLD);
    folder.takePeerKeyBack();
    assert.equal(place.peerKey(), '');

    folder.lendPeerKey();

    assert.equal(place.peerKey(), KEYS.peer);
  });

  const CUTS: Readonly<Record<string, readonly [before: Buffer | undefined, change: (folder: MemberFolder) => void]>> =
    {
      'a seal': [undefined, (folder) => folder.seal(OLD)],
      'a rotation': [OLD, (folder) => folder.seal(NEW)],
      'the end of a seal': [OLD, (folder) => folder.unseal()],
      'a renewed certificate': [OLD, (folder) => folder.write(RENEWED)],
    };
  for (const [name, [before, change]] of Object.entries(CUTS)) {
    test(`${name} that is cut at any step leaves keys that open`, () => {
      using place = new Place();
      place.made(before);
      let steps = 0;
      for (let isCut = true; isCut;) {
        steps += 1;
        assert.ok(steps < MAX_STEPS);
        const at = String(steps);
        cpSync(join(place.root, 'whole'), join(place.root, at), { recursive: true, verbatimSymlinks: true });
        const daemon = place.folder(at);
        if (before !== undefined) daemon.unlock(before);
        isCut = cutAt(steps, () => change(daemon));

        const folder = place.folder(at);
        folder.settle();
        if (folder.isLocked) assert.deepEqual(place.plain(at), [], `cut at step ${steps}`);
        const identity = folder.isLocked ? (folder.unlock(OLD) ?? folder.unlock(NEW)) : folder.read();
        const { certificate, key } = identity?.key === KEYS.key ? IDENTITY : RENEWED;
        assert.deepEqual([identity?.certificate, identity?.key], [certificate, key], `cut at step ${steps}`);
        assert.equal(folder.readDataKey()?.toString(), KEYS.data);
        folder.lendPeerKey();
        assert.equal(place.peerKey(at), KEYS.peer);
      }
    });
  }
});

class Cut extends Error {}

/** Whether a step of this number was there to cut: it and all later ones change nothing on the disk. */
function cutAt(number: number, work: () => void): boolean {
  using undo = new DisposableStack();
  let steps = 0;
  for (const name of ['renameSync', 'rmSync', 'symlinkSync'] as const) {
    const original = fs[name] as (...values: unknown[]) => void;
    const counted = (...values: unknown[]): void => {
      steps += 1;
      if (steps >= number) throw new Cut();
      original(...values);
    };
    Object.assign(fs, { [name]: counted });
    undo.defer(() => void Object.assign(fs, { [name]: original }));
  }
  syncBuiltinESMExports();
  try {
    work();
    return false;
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    return true;
  } finally {
    undo.dispose();
    syncBuiltinESMExports();
  }
}
