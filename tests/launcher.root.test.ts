import assert from 'node:assert/strict';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { LauncherCopy } from './launcher-copy.ts';

const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
const missing = 'gantry-no-such-package';

test('without a network everything that is there works', async () => {
  await using copy = await LauncherCopy.make();

  for (const args of [['ps'], ['daemon'], ['daemon', '--version'], ['gateway'], ['check']]) {
    const { code, stdout, stderr } = await copy.run(args, { within: ['unshare', '-n'] });

    assert.deepEqual([args, code, stderr], [args, 0, '']);
    assert.match(stdout, /^ran /);
  }
});

test('commands that need root say so', async () => {
  await using copy = await LauncherCopy.make();

  for (const command of ['test', 'bench']) {
    const { code, stdout, stderr } = await copy.run([command], { within: nobody });

    assert.deepEqual([command, code, stdout], [command, 1, '']);
    assert.match(stderr, new RegExp(`^gantry: '${command}' needs root: .* Try: sudo .*/gantry ${command}\n$`));
  }
});

test("a user's daemon and demo name the packages that they lack", async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('tools/packages/rootless.txt', 'gantry-no-such-package\n');

  for (const command of ['daemon', 'demo']) {
    const { code, stderr } = await copy.run([command], { within: nobody });

    assert.equal(code, 1);
    assert.match(stderr, /only root can install them: gantry-no-such-package\n$/);
  }
});

test('a folder that root has set up serves the others', async () => {
  await using copy = await LauncherCopy.make();

  for (const command of [['ps'], ['daemon', '--help'], ['gateway'], ['demo', 'gateway'], ['check']]) {
    const { code, stdout, stderr } = await copy.run(command, { within: nobody });

    assert.deepEqual([command, code, stderr], [command, 0, '']);
    assert.match(stdout, /^ran /);
  }
});

test('an installation into a read-only folder is refused with the reason', async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('package-lock.json', '{}');

  const { code, stderr } = await copy.run(['ps'], { within: nobody });

  assert.equal(code, 1);
  assert.match(stderr, /^gantry: something is to be installed into .*, and you may not write there\n$/);
});

test('a missing package is named to a user without root', async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('tools/packages/check.txt', `dpkg\n${missing}  # not there\n`);

  const { code, stderr } = await copy.run(['check'], { within: nobody });

  assert.equal(code, 1);
  assert.match(stderr, new RegExp(`only root can install them: ${missing}\n$`));
});

test('apt that fails is reported with its words, and nothing is run', async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('tools/packages/run.txt', `dpkg\n${missing}\n`);
  await copy.standIn('apt-get', `echo "$*" >>"$HOME/apt-calls"; echo 'E: Unable to locate package'; exit 100`);

  const { code, stdout, stderr } = await copy.run(['daemon']);

  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr,
    `gantry: installing Debian packages: ${missing}\n` +
      `E: Unable to locate package\ngantry: apt-get could not install: ${missing}\n`,
  );
  await assert.rejects(access(join(copy.folder, '.node/packages.run')), { code: 'ENOENT' });
  const policy = await readFile('/usr/sbin/policy-rc.d', 'utf8').catch(() => '');
  assert.doesNotMatch(policy, /by gantry/);
});

test('only missing packages are installed, old package lists are renewed, and the next call asks nobody', async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('tools/packages/run.txt', `dpkg\n${missing}\n`);
  // As on a machine whose lists are old: the first install fails, an update helps.
  await copy.standIn(
    'apt-get',
    `echo "\${1} \${*##*=300 }" >>"$HOME/apt-calls"; [ -e "$HOME/updated" ] || { touch "$HOME/updated"; exit 100; }`,
  );

  const first = await copy.run(['daemon']);
  await copy.standIn('dpkg-query', 'echo asked >&2; exit 1');
  const second = await copy.run(['daemon']);

  const calls = await readFile(join(copy.folder, '../apt-calls'), 'utf8');
  assert.deepEqual(calls.split('\n'), [`-y install ${missing}`, '-qq -qq update', `-y install ${missing}`, '']);
  assert.deepEqual([first.code, first.stdout], [0, `ran ${copy.folder}/engine/main.ts\n`]);
  assert.deepEqual([second.code, second.stderr], [0, '']);
});
