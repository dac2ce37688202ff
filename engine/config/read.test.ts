import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

import { NEWEST } from '../http/versions/api-version.ts';
import { readSettings } from '../settings.ts';
import { ConfigError } from './read.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-config-'));
after(() => rmSync(folder, { recursive: true }));

function fileWith(content: unknown): string {
  const path = join(folder, `${crypto.randomUUID()}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function problemsOf(argv: readonly string[]): readonly string[] {
  try {
    readSettings(argv);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
}

test('every flag of dockerd has its effect, in each way of writing it', () => {
  const argv = ['-H', 'unix:///a.sock', '-H=tcp://127.0.0.1:1', '-Hunix:///b.sock', '--host', 'tcp://[::1]:2'];
  argv.push('--data-root=/d', '--exec-root', '/e', '-p', '/p.pid', '-G', '0', '-b', 'none', '--bip=10.1.2.3/24');
  argv.push('--api-cors-header=*', '-l', 'warn', '--log-driver=json-file', '--log-opt', 'max-size=1m');
  argv.push('--log-opt=max-file=3', '--dns=9.9.9.9', '--dns=::1', '--dns-opt', 'ndots:1', '--dns-search=a.b');
  argv.push('--default-ulimit=nofile=1:2', '--default-ulimit', 'core=0', '--label=a=b', '--label', 'c=d=e');
  argv.push('--cgroup-driver=cgroupfs', '--exec-opt=native.cgroupdriver=cgroupfs', '--cgroup-parent=/own');
  argv.push('--cpu-rt-period=1000000', '--cpu-rt-runtime', '5000');
  argv.push('--runtime=other=/bin/true', '--default-runtime=other', '--live-restore=0', '--mtu=1400', '--tls=f');

  const config = readSettings(argv);

  assert.deepEqual(config.hosts, ['unix:///a.sock', 'tcp://127.0.0.1:1', 'unix:///b.sock', 'tcp://[::1]:2']);
  assert.deepEqual([config.dataRoot, config.execRoot, config.pidfile, config.group], ['/d', '/e', '/p.pid', '0']);
  assert.deepEqual([config.bridge, config.bip, config.mtu], ['none', '10.1.2.3/24', 1400]);
  assert.deepEqual([config.apiCorsHeader, config.logLevel, config.debug], ['*', 'warn', false]);
  assert.deepEqual(config.logOpts, { 'max-size': '1m', 'max-file': '3' });
  assert.deepEqual([config.cgroupDriver, config.cgroupParent], ['cgroupfs', '/own']);
  assert.deepEqual(config.realtime, { periodUs: 1_000_000, runtimeUs: 5000 });
  assert.deepEqual([config.dns, config.dnsOpts, config.dnsSearch], [['9.9.9.9', '::1'], ['ndots:1'], ['a.b']]);
  assert.deepEqual(config.defaultUlimits, { nofile: { soft: 1, hard: 2 }, core: { soft: 0, hard: 0 } });
  assert.deepEqual(config.labels, ['a=b', 'c=d=e']);
  assert.deepEqual(config.runtimes, { other: { path: '/bin/true', runtimeArgs: [] } });
  assert.deepEqual([config.defaultRuntime, config.liveRestore, config.tls], ['other', false, false]);
});

test('the file has the keys of dockerd, and flags stand beside it', () => {
  const path = fileWith({
    hosts: ['unix:///a.sock'],
    debug: true,
    'log-opts': { 'max-size': '1m' },
    'default-ulimits': { nofile: { Name: 'nofile', Soft: 5, Hard: 6 } },
    runtimes: { other: { path: '/bin/true', runtimeArgs: ['--debug'] } },
    labels: ['a=b'],
    'api-cors-header': 'x',
  });

  const config = readSettings(['--config-file', path, '--dns=1.1.1.1']);

  assert.deepEqual([config.hosts, config.dns, config.labels], [['unix:///a.sock'], ['1.1.1.1'], ['a=b']]);
  assert.deepEqual([config.debug, config.logLevel, config.apiCorsHeader], [true, 'debug', 'x']);
  assert.deepEqual(config.defaultUlimits, { nofile: { soft: 5, hard: 6 } });
  assert.deepEqual(config.runtimes.other, { path: '/bin/true', runtimeArgs: ['--debug'] });
});

test('requests without a version speak the newest, or the one of the settings', () => {
  const versionsOf = (...argv: string[]): string[] => {
    const { minApiVersion, maxApiVersion, defaultApiVersion } = readSettings(argv);
    return [minApiVersion, maxApiVersion, defaultApiVersion];
  };

  assert.deepEqual(versionsOf(), ['1.12', NEWEST, NEWEST]);
  assert.deepEqual(versionsOf('--max-api-version=1.41', '--min-api-version=1.24'), ['1.24', '1.41', '1.41']);
  assert.deepEqual(versionsOf('--default-api-version=1.21'), ['1.12', NEWEST, '1.21']);
});

test('versions of the API that exclude each other are refused', () => {
  const older = '--max-api-version=1.40';

  assert.deepEqual(problemsOf(['--min-api-version=1.41', older]), [
    'flag --min-api-version: 1.41 is newer than the max-api-version 1.40',
  ]);
  assert.deepEqual(problemsOf(['--default-api-version=1.41', older]), [
    'flag --default-api-version: 1.41 is not between the min-api-version 1.12 and the max-api-version 1.40',
  ]);
});

test('a setting that is in the file and among the flags is refused', () => {
  const path = fileWith({ labels: ['a=b'], bip: '10.0.0.1/24', debug: false });

  assert.deepEqual(problemsOf(['--config-file', path, '--label=c=d', '--bip=10.0.0.1/24', '-D']), [
    `flag --label: also set in the configuration file ${path}, as "labels"`,
    `flag --bip: also set in the configuration file ${path}, as "bip"`,
    `flag --debug: also set in the configuration file ${path}, as "debug"`,
  ]);
});

test('all problems are reported together, each with its place', () => {
  const path = fileWith({ bip: 'x', storage: 'fast', mtu: '1400', 'log-level': 'loud' });

  const problems = problemsOf(['--config-file', path, '--nope', '--tls=maybe', '--default-ulimit=nofile']);

  assert.deepEqual(problems, [
    'unknown flag: --nope',
    'flag --tls: true or false is expected, not "maybe"',
    'flag --default-ulimit: name=soft[:hard] is expected, not "nofile"',
    `${path}: storage: unknown setting`,
    `${path}: mtu: must be integer`,
    `${path}: log-level: debug, info, warn, error, fatal are allowed, not "loud"`,
  ]);
});

suite('refused flags', () => {
  const cases: [string, RegExp][] = [
    ['--host=fd://3', /^flag --host: "fd:\/\/3" is not a host/],
    ['--host=tcp://1.2.3.4:70000', /^flag --host: .* is not a host/],
    ['--host=unix://relative', /^flag --host: .* is not a host/],
    ['--host=tcp://0.0.0.0:2375', /^flag --host: .*everyone who can reach TCP without TLS gets root/],
    ['--host=tcp://192.168.1.1', /^flag --host: .*everyone who can reach TCP without TLS gets root/],
    ['--group=nobody-has-this', /^flag --group: group nobody-has-this does not exist$/],
    ['--data-root=relative', /^flag --data-root: "relative" is not an absolute path$/],
    ['--bridge=a/b', /^flag --bridge: .*a\/b/],
    ['--bip=10.0.0.0/24', /^flag --bip: .*10\.0\.0\.0\/24/],
    ['--bip=10.0.0.1', /^flag --bip: .*10\.0\.0\.1/],
    ['--dns=resolver.example', /^flag --dns: resolver\.example is not an ip address$/],
    ['--label=plain', /^flag --label: bad attribute format: plain/],
    ['--log-level=loud', /^flag --log-level: .*"loud"$/],
    ['--log-driver=nosuch', /^flag --log-driver: .*"nosuch"$/],
    ['--log-opt=max-size=big', /^flag --log-opt: .*max-size.*big/],
    ['--log-opt=max-sighs=1m', /^flag --log-opt: unknown log opt 'max-sighs'/],
    ['--default-ulimit=files=1', /^flag --default-ulimit: invalid ulimit type: files$/],
    ['--default-ulimit=nofile=2:1', /^flag --default-ulimit: ulimit soft limit must be less/],
    ['--default-ulimit=nofile=lots', /^flag --default-ulimit: name=soft\[:hard\] is expected/],
    ['--default-runtime=kata', /^flag --default-runtime: specified default runtime 'kata' does not exist$/],
    ['--runtime=kata', /^flag --runtime: name=value is expected, not "kata"$/],
    ['--tls', /^flag --tlscert: TLS needs --tlscert and --tlskey$/],
    ['--tlsverify', /TLS needs/],
    ['--min-api-version=1.11', /^flag --min-api-version: "1\.11" is not a version of the API from 1\.12 to 1\.55$/],
    ['--max-api-version=2', /^flag --max-api-version: "2" is not a version of the API/],
    ['--max-api-version=1.56', /^flag --max-api-version: "1\.56" is not a version of the API/],
    ['--default-api-version=v1.20', /^flag --default-api-version: "v1\.20" is not a version of the API/],
    ['--mtu=big', /^flag --mtu: a number is expected, not "big"$/],
    ['--config-file=/does/not/exist', /^cannot read \/does\/not\/exist: no such file or directory$/],
    ['--config-file', /^flag --config-file: a value is missing$/],
    ['words', /^unknown flag: words$/],
    ['-x', /^unknown flag: -x$/],
  ];
  for (const [flag, message] of cases) {
    test(flag, () => {
      assert.match(problemsOf([flag])[0] ?? '', message);
    });
  }
});

suite('refused keys and values of the file', () => {
  const cases: [unknown, RegExp][] = [
    ['{"debug": yes}', / is not JSON/],
    ['[]', /: not a JSON object$/],
    [{ hosts: 'unix:///a' }, /: hosts: must be array$/],
    [{ hosts: [] }, /: hosts: at least one host is required$/],
    [{ labels: ['a=b', 5] }, /: labels: 1: must be string$/],
    [{ labels: ['a=b', 'a=c'] }, /: labels: conflict labels for a=b and a=c$/],
    [{ 'default-ulimits': { nofile: { Soft: 1 } } }, /: default-ulimits: nofile: .*Hard/],
    [{ runtimes: { kata: { path: '' } } }, /: runtimes: kata\.path: /],
    [{ 'live-restore': 'yes' }, /: live-restore: must be boolean$/],
    [{ 'Log-Level': 'info' }, /: Log-Level: unknown setting$/],
  ];
  for (const [content, message] of cases) {
    test(typeof content === 'string' ? content : JSON.stringify(content), () => {
      const path = fileWith(content);
      const [problem = ''] = problemsOf(['--config-file', path]);
      assert.ok(problem.startsWith(path), problem);
      assert.match(problem, message);
    });
  }
});

test('a certificate and a key that do not belong together are refused', () => {
  for (const name of ['a', 'b']) {
    const words = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=${name} -keyout ${name}.key -out ${name}.pem`;
    execFileSync('openssl', words.split(' '), { cwd: folder, stdio: 'pipe' });
  }
  const tls = (cert: string, key: string): string[] => [
    '--tls',
    `--tlscert=${folder}/${cert}`,
    `--tlskey=${folder}/${key}`,
  ];

  assert.deepEqual(problemsOf(tls('a.pem', 'a.key')), []);
  assert.match(problemsOf(tls('a.pem', 'b.key'))[0] ?? '', /^flag --tlscert: .*a\.pem and .*b\.key cannot be used/);
  assert.match(
    problemsOf(tls('a.pem', 'c.key'))[0] ?? '',
    /^flag --tlscert: cannot read .*c\.key: no such file or directory$/,
  );
  assert.match(
    problemsOf([...tls('a.pem', 'a.key'), '--tlsverify', `--tlscacert=${folder}/a.key`])[0] ?? '',
    /^flag --tlscacert: .*does not contain a certificate/,
  );
});

test('a cgroup driver that is unknown, contradicted, or does not fit the parent is refused', () => {
  const file = fileWith({ 'exec-opts': ['native.cgroupdriver=systemd', 'other=1'] });

  assert.deepEqual(problemsOf(['--config-file', file, '--cgroup-driver=cgroupfs', '--cgroup-parent=a.slice']), [
    `${file}: exec-opts: systemd contradicts the setting cgroup-driver`,
    'flag --cgroup-parent: a.slice is a slice of systemd',
  ]);
  assert.deepEqual(problemsOf(['--cgroup-driver=other']), [
    'flag --cgroup-driver: , systemd, cgroupfs are allowed, not "other"',
  ]);
});
