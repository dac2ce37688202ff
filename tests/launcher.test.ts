import assert from 'node:assert/strict';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { COMMANDS } from '@gantry/cli/commands.ts';
import { GROUPS } from '@gantry/cli/groups.ts';

import { LauncherCopy, NODE, nodePackage, outcome, repository } from './launcher-copy.ts';

const nothingDone = ['gantry', 'package-lock.json', 'package.json', 'shim', 'tools'];

/** Installs like npm: into place and bit by bit. Half way it waits until another call waits for the lock, if it shall. */
function slowNpm(lock: string, waits: boolean): string {
  return `
    echo "$*" >>"$HOME/npm-calls"
    case "$*" in
      ci*) mkdir -p node_modules; exit ;;
    esac
    while [ "$1" != --prefix ]; do shift; done
    bin=$2/node_modules/${nodePackage()}/bin
    mkdir -p "$bin"
    printf '#!/bin/sh\\nexit 99\\n' >"$bin/node"
    chmod 755 "$bin/node"
    inode=$(stat -c %i '${lock}')
    tries=0
    while ${waits} && [ $tries -lt 500 ] && ! grep -q -- "-> .*:$inode " /proc/locks; do
      sleep 0.02
      tries=$((tries + 1))
    done
    cat >"$bin/node" <<'END'
${NODE}END`;
}

test('a second call of a client command starts one small program before Node', async () => {
  await using copy = await LauncherCopy.make();
  await copy.standIn('cmp', 'exec /usr/bin/cmp "$@"');

  const { code, stdout, stderr } = await copy.run(['ps', '-a'], { env: { PATH: join(copy.folder, '../first') } });

  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout, `ran ${copy.folder}/cli/main.ts ps -a\n`);
});

test('the exit code of the command is that of the launcher', async () => {
  await using copy = await LauncherCopy.make();

  const { code } = await copy.run(['run', 'busybox', 'false'], { env: { NODE_EXITS: '42' } });

  assert.equal(code, 42);
});

test('arguments arrive as they were given, in a folder with a blank in its name', async () => {
  await using copy = await LauncherCopy.make({ name: 'a folder * with blanks' });
  await copy.standIn('node', NODE.replace('"ran $*"', '"$#"'));
  await rm(join(copy.folder, '.node'), { recursive: true });

  const check = await copy.run(['check', 'one two', '', '*']);
  const client = await copy.run(['run', 'one two', '', '*']);

  assert.deepEqual([check.code, check.stderr, check.stdout], [0, '', '5\n']);
  assert.deepEqual([client.code, client.stderr, client.stdout], [0, '', '5\n']);
});

const nodesOwn = [
  ['--env-file', 'given'],
  ['--env-file=nowhere'],
  ['--env-file-if-exists', 'given'],
  ['--experimental-config-file=nowhere', '=x'],
  ['--experimental-default-config-file'],
  ['--', '--env-file', 'given'],
  ['-e', '1', '--eval=1', '-r', 'x', '--run', 'x', '--test', '--watch', '--inspect', '--version'],
];
for (const words of nodesOwn) {
  test(`Node keeps its hands off ${words.join(' ')}`, async () => {
    await using copy = await LauncherCopy.make();
    await copy.program(`.node/node_modules/${nodePackage()}/bin/node`, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
    await copy.write('cli/package.json', '{ "type": "module" }');
    await copy.write('cli/words.ts', await readFile(join(repository, 'cli/words.ts'), 'utf8'));
    await copy.write(
      'cli/main.ts',
      `import { wordsOf } from './words.ts'; console.log(JSON.stringify([wordsOf(process.argv), process.env.LOADED]))`,
    );
    await writeFile(join(copy.folder, '../given'), 'LOADED=by Node\n');

    const { code, stdout, stderr } = await copy.run(['run', ...words]);

    assert.deepEqual([code, stderr, JSON.parse(stdout)], [0, '', [['run', ...words], null]]);
  });
}

test('programs are bundled when a source has changed, and run as sources where that fails', async () => {
  await using copy = await LauncherCopy.make();
  for (const name of ['engine', 'cli', 'client', 'gateway', 'limiter', 'template', 'page', 'build/app', 'tools'])
    await copy.write(`${name}/source.ts`, '');
  for (const name of ['bundle', 'bundle-page']) await copy.write(`tools/${name}.ts`, '');
  await copy.write('build/app/stamp', '');
  const run = async (): Promise<string[]> => {
    const { stdout, stderr } = await copy.run(['ps'], { env: { GANTRY_SOURCES: '' } });
    return [stderr, stdout];
  };

  const unchanged = await run();
  await copy.write('client/source.ts', 'changed');
  const changed = await run();
  await copy.program(`.node/node_modules/${nodePackage()}/bin/node`, NODE.replace('echo', 'echo >&2; exit 1; echo'));
  await rm(join(copy.folder, 'build'), { recursive: true });
  const { stderr } = await copy.run(['ps'], { env: { GANTRY_SOURCES: '' } });

  const bundled = `ran ${copy.folder}/build/app/client.cjs ps\n`;
  assert.deepEqual(unchanged, ['', bundled]);
  assert.deepEqual(changed, [`ran ${copy.folder}/tools/bundle.ts\n`, bundled]);
  assert.match(stderr, /the programs could not be bundled and run as sources/);
});

test('a symlink from elsewhere finds the folder', async () => {
  await using copy = await LauncherCopy.make();
  const link = join(copy.folder, '../elsewhere/gantry-link');
  await mkdir(join(copy.folder, '../elsewhere'));
  await symlink('../gantry/gantry', link);

  const { code, stdout } = await outcome(link, ['ps'], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', GANTRY_SOURCES: '1' },
  });

  assert.deepEqual([code, stdout], [0, `ran ${copy.folder}/cli/main.ts ps\n`]);
});

test('an unknown command is refused with the usage, and nothing is set up', async () => {
  await using copy = await LauncherCopy.make({ prepared: false });

  for (const args of [['bogus'], ['demo', 'bogus'], ['bench', 'bogus'], ['']]) {
    const { code, stdout, stderr } = await copy.run(args);

    assert.deepEqual([args, code, stdout], [args, 125, '']);
    assert.match(stderr, /^gantry: there is no (command|demo|bench) .*\nUsage: \.\/gantry COMMAND/);
  }
  assert.deepEqual(await copy.names(), nothingDone);
});

test("the usage of the launcher's own commands needs no set-up", async () => {
  await using copy = await LauncherCopy.make({ prepared: false });

  for (const args of [[], ['help'], ['demo', '-h'], ['test', '--help'], ['check', '--help'], ['bench', '--help']]) {
    const { code, stdout, stderr } = await copy.run(args);

    assert.deepEqual([args, code, stderr], [args, 0, '']);
    assert.match(stdout, /^Usage: \.\/gantry/);
  }
  assert.deepEqual(await copy.names(), nothingDone);
});

test('the help of daemon and gateway needs no Debian packages', async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('tools/packages/run.txt', 'gantry-no-such-package\n');

  for (const args of [
    ['daemon', '--help'],
    ['daemon', '-v'],
    ['gateway', '--help'],
  ]) {
    const { code, stdout, stderr } = await copy.run(args);

    assert.deepEqual([args, code, stderr], [args, 0, '']);
    assert.match(stdout, /^ran .*main\.ts /);
  }
});

test('the launcher knows every command of the client', async () => {
  await using copy = await LauncherCopy.make({ prepared: false });

  const { stderr: usage } = await copy.run(['nonsense']);
  const known = usage.split('Use it\n')[1]!.split('(')[0]!.trim().split(/\s+/);

  const commands = Object.keys(COMMANDS).filter((name) => !name.includes(' '));
  assert.deepEqual(known.toSorted(), [...commands, ...Object.keys(GROUPS)].toSorted());
});

test('help without a word shows the commands of the launcher and of the client', async () => {
  const { code, stdout } = await outcome(join(repository, 'gantry'), ['help'], {});

  assert.equal(code, 0);
  assert.match(stdout, /^Usage: \.\/gantry[^]*daemon +the container engine[^]*ps +List containers/);
});

test('another system than Linux is named and left alone', async () => {
  await using copy = await LauncherCopy.make({ prepared: false });
  await copy.standIn('uname', 'echo Darwin arm64');

  const { code, stderr } = await copy.run(['ps']);

  assert.equal(code, 1);
  assert.match(stderr, /^gantry: Linux is needed, this is Darwin/);
  assert.deepEqual(await copy.names(), nothingDone);
});

test("the system's Node is used when it is new enough, and npm brings one when it is not", async () => {
  await using copy = await LauncherCopy.make({ prepared: false });
  await copy.standIn('npm', slowNpm(join(copy.folder, '.node/lock'), false));
  await copy.standIn('node', NODE.slice(NODE.indexOf('\n') + 1));

  const newEnough = await copy.run(['ps']);
  const before = await copy.names();
  await copy.standIn('node', 'echo v20.19.2');
  const old = await copy.run(['ps']);

  assert.deepEqual([newEnough.code, newEnough.stdout], [0, `ran ${copy.folder}/cli/main.ts ps\n`]);
  assert.ok(before.includes('node_modules'));
  assert.deepEqual([old.code, old.stdout], [0, `ran ${copy.folder}/cli/main.ts ps\n`]);
  assert.match(old.stderr, /^gantry: installing Node 26$/m);
});

test('of two first calls at the same time one installs, and both run', async () => {
  await using copy = await LauncherCopy.make({ prepared: false });
  await copy.standIn('npm', slowNpm(join(copy.folder, '.node/lock'), true));
  await copy.standIn('node', 'echo v20.19.2');

  const calls = await Promise.all([copy.run(['ps']), copy.run(['images'])]);
  const npm = await outcome('cat', [join(copy.folder, '../npm-calls')], {});

  assert.deepEqual(
    calls.map(({ code, stdout }) => [code, stdout]),
    ['ps', 'images'].map((command) => [0, `ran ${copy.folder}/cli/main.ts ${command}\n`]),
  );
  assert.deepEqual(
    npm.stdout.split('\n').map((line) => line.split(' ')[0]),
    ['install', 'ci', ''],
  );
});

test('npm that fails is reported with its words, and the next call begins anew', async () => {
  await using copy = await LauncherCopy.make({ prepared: false });
  await copy.standIn('node', 'echo v20.19.2');
  const npm = slowNpm(join(copy.folder, '.node/lock'), false);
  await copy.standIn('npm', npm.replace(/cat >[^]*/, 'echo "npm error the registry is away" >&2; exit 1'));
  const failed = await copy.run(['ps']);

  await copy.standIn('npm', npm);
  const { code, stdout } = await copy.run(['ps']);

  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /the registry is away\ngantry: npm could not install node-linux-\w+@26\n$/);
  assert.deepEqual([code, stdout], [0, `ran ${copy.folder}/cli/main.ts ps\n`]);
});

test('packages that no registry gives are a clear error, and are asked for again by the next call', async () => {
  await using copy = await LauncherCopy.make();
  await copy.write('package.json', '{ "name": "copy", "version": "1.0.0", "dependencies": { "commander": "1.0.0" } }');
  await copy.write(
    'package-lock.json',
    JSON.stringify({
      name: 'copy',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: {
        '': { name: 'copy', version: '1.0.0', dependencies: { commander: '1.0.0' } },
        'node_modules/commander': { version: '1.0.0', resolved: 'http://127.0.0.1:9/commander.tgz' },
      },
    }),
  );
  await copy.program(`.node/node_modules/${nodePackage()}/bin/node`, `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  const npm = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_fetch_retries: '0' };

  for (let call = 0; call < 2; call += 1) {
    const { code, stdout, stderr } = await copy.run(['ps'], { env: { PATH: process.env['PATH'], ...npm } });

    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /ECONNREFUSED[^]*gantry: npm could not install the packages\n$/);
  }
});
