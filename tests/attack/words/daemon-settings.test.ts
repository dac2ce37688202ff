import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';

import { ConfigError } from '@gantry/engine/config/read.ts';
import { readSettings } from '@gantry/engine/settings.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-words-'));
after(() => rmSync(folder, { recursive: true }));

const LONG = 'a'.repeat(300);
const FILES = [
  '/nowhere',
  '/etc',
  '/etc/passwd',
  '/etc/passwd/x',
  `/${LONG}`,
  '/\0',
  '',
  '/proc/self/mem',
  '/dev/null',
];

/** Files of settings, each of which is refused. */
const documents: readonly string[] = [
  ...['{', '[', 'nul', '{"a"', '{"a":1,}', '"\\u', '\u00ff', '{} {}', '', '\0', '['.repeat(1_000_000)],
  ...['{"__proto__":1}', '{"constructor":1}', '{"hosts":null}', '{"hosts":[null]}', '{"log-opts":[]}', '{"mtu":1e999}'],
  ...['{"log-opts":{"a":1}}', '{"runtimes":{"x":null}}', '{"runtimes":{"x":{"path":1}}}', '{"labels":{}}'],
  '{"default-ulimits":{"constructor":{"Soft":1,"Hard":1}}}',
];
/** Files of `--api-rate-limit`, each of which is refused. */
const limits: readonly string[] = [
  ...documents.slice(0, 11),
  ...['[]', 'null', '{"x":1}', '{"limits":null}', '{"limits":{"user":-1}}'],
  '{"identities":{"tokens":[{"sha256":"x","user":"a"}]}}',
  '{"categories":{"core":{"windowSeconds":1.5}}}',
];

const VALUES = [
  '%zz',
  '[::1',
  '',
  LONG,
  '\0',
  'http://%zz',
  '1.2.3.4/99',
  '-1',
  '9'.repeat(20),
  '{',
  '(',
  'base=x,size=y',
];
const FLAGS = [
  ...['host', 'bip', 'fixed-cidr-v6', 'default-address-pool', 'mtu', 'metrics-addr', 'min-api-version', 'log-opt'],
  ...['insecure-registry', 'registry-mirror', 'search-index', 'log-level', 'log-driver', 'dns', 'default-ulimit'],
  ...['label', 'runtime', 'default-runtime', 'cgroup-driver', 'exec-opt', 'cgroup-parent', 'cpu-rt-period', 'bridge'],
  ...['group', 'data-root', 'exec-root', 'pidfile'],
];
const LOG_OPTIONS: readonly (readonly [driver: string, option: string, value: string])[] = [
  ['json-file', 'max-size', '('],
  ['json-file', 'labels-regex', '('],
  ['json-file', 'tag', '{{'],
  ['syslog', 'syslog-address', 'udp://%zz'],
  ['syslog', 'syslog-address', `unix:///${LONG}`],
  ['syslog', 'syslog-address', 'unix:///etc/passwd/x'],
  ['gelf', 'gelf-address', 'udp://['],
  ['fluentd', 'fluentd-address', '%zz'],
  ['splunk', 'splunk-url', 'http://%zz'],
];

suite('settings of the daemon that are wrong', () => {
  function problemsOf(argv: readonly string[]): readonly string[] {
    try {
      readSettings(argv);
      return [];
    } catch (error) {
      assert.ok(error instanceof ConfigError, `${argv.join(' ').slice(0, 200)}: ${String(error)}`);
      return error.problems;
    }
  }

  function check(argv: readonly string[]): number {
    const problems = problemsOf(argv);
    for (const problem of problems) assert.equal(internalWord(problem), undefined, problem.slice(0, 600));
    return problems.length;
  }

  function fileWith(text: string): string {
    const path = join(folder, 'settings.json');
    writeFileSync(path, text);
    return path;
  }

  test('files are refused in words of an operator, each with its name', () => {
    for (const text of documents) assert.ok(check(['--config-file', fileWith(text)]) > 0, text.slice(0, 100));
    for (const text of limits) assert.ok(check(['--api-rate-limit', fileWith(text)]) > 0, text.slice(0, 100));
    for (const file of FILES) {
      assert.ok(check(['--config-file', file]) > 0, file);
      assert.ok(file === '' || check(['--api-rate-limit', file]) > 0, file);
      assert.ok(check(['--tlsverify', '--tlscert', file, '--tlskey', file, '--tlscacert', file]) > 0, file);
    }
    assert.deepEqual(problemsOf(['--config-file', fileWith('{\n  "debug": true,\n}')]), [
      `${join(folder, 'settings.json')} is not JSON (line 3 column 1)`,
    ]);
  });

  test('values of flags are refused in words of an operator', () => {
    for (const flag of FLAGS) {
      for (const value of VALUES) check([`--${flag}=${value}`]);
    }
    for (const [driver, option, value] of LOG_OPTIONS) {
      check([`--log-driver=${driver}`, `--log-opt=${option}=${value}`]);
    }
  });
});
