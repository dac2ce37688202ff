import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { makeNode } from '../host/nodes.ts';
import { setXattr } from '../host/xattr.ts';
import type { Overlay } from '../layers/layers.ts';
import { resolveUser } from './container-user.ts';

const PASSWD = 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001:App:/home/app:/bin/sh\n';
const GROUP = 'root:x:0:\napp:x:1001:\nwheel:x:10:app,root\nvideo:x:44:app\n';

/** Folders as an overlay has them, with these files of /etc in each; the first is the container's own. */
class TestLayers implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'gantry-user-'));
  readonly overlay: Overlay;

  constructor(...layers: Record<string, string>[]) {
    const names = layers.map((_, index) => `layer${index}`);
    for (const [index, files] of layers.entries()) {
      mkdirSync(this.etc(index), { recursive: true });
      for (const [name, text] of Object.entries(files)) writeFileSync(join(this.etc(index), name), text);
    }
    const [upper = '', ...lower] = names;
    this.overlay = { base: this.directory, lower, upper: join(this.directory, upper), work: '', target: '' };
  }

  etc(layer: number): string {
    return join(this.directory, `layer${layer}`, 'etc');
  }

  [Symbol.dispose](): void {
    rmSync(this.directory, { recursive: true });
  }
}

const cases: [string, object][] = [
  ['', { uid: 0, gid: 0, additionalGids: [10] }],
  ['app', { uid: 1000, gid: 1001, additionalGids: [10, 44] }],
  ['1000', { uid: 1000, gid: 1001, additionalGids: [10, 44] }],
  ['app:video', { uid: 1000, gid: 44, additionalGids: [] }],
  ['4242', { uid: 4242, gid: 0, additionalGids: [] }],
  ['4242:4343', { uid: 4242, gid: 4343, additionalGids: [] }],
  ['app:0', { uid: 1000, gid: 0, additionalGids: [] }],
];

for (const [written, expected] of cases) {
  test(`the user "${written}" is ${JSON.stringify(expected)}`, () => {
    using layers = new TestLayers({}, { passwd: PASSWD, group: GROUP });

    assert.deepEqual(resolveUser(written, [], layers.overlay), expected);
  });
}

for (const written of ['nobody', 'app:nogroup', '-1', '99999999999']) {
  test(`the user "${written}" is not found`, () => {
    using layers = new TestLayers({}, { passwd: PASSWD, group: GROUP });

    assert.throws(() => resolveUser(written, [], layers.overlay), { kind: 'invalid', message: /no matching entries/ });
  });
}

test('further groups are given by name or number', () => {
  using layers = new TestLayers({}, { passwd: PASSWD, group: GROUP });

  const { additionalGids } = resolveUser('4242', ['video', '77'], layers.overlay);

  assert.deepEqual(additionalGids, [44, 77]);
});

test("the container's own file covers the image's", () => {
  using layers = new TestLayers({ passwd: 'app:x:5:6::/:\n' }, { passwd: PASSWD, group: GROUP });

  assert.equal(resolveUser('app', [], layers.overlay).uid, 5);
});

test('a file that a layer removed is gone', () => {
  using layers = new TestLayers({}, { passwd: PASSWD });
  makeNode(join(layers.etc(0), 'passwd'), { kind: 'char', mode: 0o600 });

  assert.throws(() => resolveUser('app', [], layers.overlay), { kind: 'invalid' });
});

test('an opaque folder hides what is below it', () => {
  using layers = new TestLayers({}, { passwd: PASSWD });
  setXattr(layers.etc(0), 'trusted.overlay.opaque', Buffer.from('y'));

  assert.throws(() => resolveUser('app', [], layers.overlay), { kind: 'invalid' });
});

test("a symbolic link does not lead to the host's users", () => {
  using layers = new TestLayers({}, {});
  symlinkSync('/etc/passwd', join(layers.etc(1), 'passwd'));

  assert.throws(() => resolveUser('daemon', [], layers.overlay), { kind: 'invalid' });
});
