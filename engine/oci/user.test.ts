import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { growthBy, leastOf } from '@gantry/testing/memory/bytes-in-use.ts';

import { checkUser, resolveUser, type ContainerUser } from './user.ts';

const PASSWD =
  'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001:App:/home/app:/bin/sh\nevil:x:4294967295:0::/:\nodd:x:one:2::/:\n';
const GROUP = 'root:x:0:\napp:x:1001:\nwheel:x:10:app,root\nvideo:x:44:app\n';

/** The root of a container with these files in its /etc. */
class TestRoot implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'gantry-user-'));

  constructor(files: Record<string, string> = { passwd: PASSWD, group: GROUP }) {
    mkdirSync(join(this.path, 'etc'));
    for (const [name, text] of Object.entries(files)) writeFileSync(this.etc(name), text);
  }

  etc(name: string): string {
    return join(this.path, 'etc', name);
  }

  async resolve(user: string, groupAdd: string[] = []): Promise<ContainerUser> {
    return await resolveUser({ user, groupAdd }, this.path);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

const cases: [string, ContainerUser][] = [
  ['', { uid: 0, gid: 0, additionalGids: [0, 10], home: '/root' }],
  ['app', { uid: 1000, gid: 1001, additionalGids: [1001, 10, 44], home: '/home/app' }],
  ['1000', { uid: 1000, gid: 1001, additionalGids: [1001, 10, 44], home: '/home/app' }],
  ['01000', { uid: 1000, gid: 1001, additionalGids: [1001, 10, 44], home: '/home/app' }],
  ['app:video', { uid: 1000, gid: 44, additionalGids: [44], home: '/home/app' }],
  ['4242', { uid: 4242, gid: 0, additionalGids: [0], home: '/' }],
  ['4242:4343', { uid: 4242, gid: 4343, additionalGids: [4343], home: '/' }],
  ['app:0', { uid: 1000, gid: 0, additionalGids: [0], home: '/home/app' }],
  ['2147483647:2147483647', { uid: 2147483647, gid: 2147483647, additionalGids: [2147483647], home: '/' }],
];

for (const [written, expected] of cases) {
  test(`the user "${written}" is ${JSON.stringify(expected)}`, async () => {
    using root = new TestRoot();

    assert.deepEqual(await root.resolve(written), expected);
  });
}

for (const written of ['nobody', 'app:nogroup', '-1', 'odd']) {
  test(`the user "${written}" is not found`, async () => {
    using root = new TestRoot();

    await assert.rejects(root.resolve(written), { kind: 'invalid', message: /no matching entries/ });
  });
}

test("a number in the container's files that is no user's is refused", async () => {
  using root = new TestRoot();

  await assert.rejects(root.resolve('evil'), { kind: 'invalid', message: /must be in range 0-2147483647/ });
});

const outside: [string, string[]][] = [
  ['2147483648', []],
  ['4294967295', []],
  ['4294967296', []],
  ['99999999999999999999', []],
  ['1:4294967295', []],
  ['app:2147483648', []],
  ['', ['4294967295']],
];
for (const [user, groupAdd] of outside) {
  test(`the user "${user}" with the groups ${JSON.stringify(groupAdd)} is refused before anything is looked up`, () => {
    const refusal = { kind: 'invalid', message: 'uids and gids must be in range 0-2147483647' };

    assert.throws(() => checkUser({ user, groupAdd }), refusal);
  });
}

test('further groups are given by name or number', async () => {
  using root = new TestRoot();

  const { additionalGids } = await root.resolve('4242', ['video', '77']);

  assert.deepEqual(additionalGids, [0, 44, 77]);
});

test('a user in numbers alone is not looked up', async () => {
  using root = new TestRoot({});
  truncateSync(writtenFile(root.etc('passwd')), 2 ** 40);
  truncateSync(writtenFile(root.etc('group')), 2 ** 40);

  const user = await resolveUser({ user: '5:6', groupAdd: ['7'] }, root.path, { needsHome: false });

  assert.deepEqual(user, { uid: 5, gid: 6, additionalGids: [6, 7], home: '/' });
});

test('a file of a terabyte is refused, not read', async () => {
  using root = new TestRoot({});
  truncateSync(writtenFile(root.etc('passwd')), 2 ** 40);
  const resolve = async (): Promise<void> =>
    await assert.rejects(root.resolve('app'), { kind: 'failed', message: /\/etc\/passwd is larger than 1 MiB/ });

  const bytes = await leastOf(5, 100 * 2 ** 20, async () => await growthBy(resolve, () => process.memoryUsage.rss()));

  assert.ok(bytes < 100 * 2 ** 20, `${bytes} bytes`);
});

test('a FIFO, a device and a folder are no files', async () => {
  using root = new TestRoot({});
  for (const command of [['mkfifo'], ['mkdir'], ['ln', '-s', '/dev/zero']]) {
    execFileSync(command[0]!, [...command.slice(1), root.etc('passwd')]);

    assert.equal((await root.resolve('0')).home, '/');
    rmSync(root.etc('passwd'), { recursive: true });
  }
});

const links = { relative: '../nix/passwd', absolute: '/nix/passwd', 'climbing above the root': '../../../nix/passwd' };
for (const [kind, target] of Object.entries(links)) {
  test(`a symbolic link is followed inside of the root: ${kind}`, async () => {
    using root = new TestRoot({});
    mkdirSync(join(root.path, 'nix'));
    writeFileSync(join(root.path, 'nix/passwd'), 'app:x:5:6::/nix:\n');
    symlinkSync(target, root.etc('passwd'));

    assert.equal((await root.resolve('app')).uid, 5);
  });
}

test("a symbolic link does not lead to the host's users", async () => {
  using root = new TestRoot({});
  symlinkSync('../../../../../../../../etc/shells', root.etc('passwd'));
  symlinkSync(`/proc/self/root/etc/passwd`, root.etc('group'));

  await assert.rejects(root.resolve('daemon'), { kind: 'invalid' });
  await assert.rejects(root.resolve('0:daemon'), { kind: 'invalid' });
});

function writtenFile(path: string): string {
  writeFileSync(path, '');
  return path;
}
