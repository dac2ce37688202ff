import assert from 'node:assert/strict';
import { test } from 'node:test';

import { logSizes } from './drivers/json-file.ts';
import { logConfigOf } from './log-options.ts';

const MB = 1024 * 1024;
const defaults = { logDriver: 'json-file', logOpts: {} };

// dockerd 20.10 refuses the same; most of it only when the container starts.
const refused: [Record<string, string>, RegExp][] = [
  [{ color: 'red' }, /^unknown log opt 'color' for json-file log driver$/],
  [{ 'max-size': 'big' }, /^invalid max-size: 'big'$/],
  [{ 'max-size': '-1' }, /^invalid max-size: '-1'$/],
  [{ 'max-size': '0' }, /^max-size must be a positive number$/],
  [{ 'max-size': '10m b' }, /^invalid max-size/],
  [{ 'max-file': '0' }, /^max-file cannot be less than 1$/],
  [{ 'max-file': '-1' }, /^invalid max-file: '-1'$/],
  [{ 'max-file': 'x' }, /^invalid max-file: 'x'$/],
  [{ compress: 'maybe' }, /^invalid compress/],
  [{ compress: 'true' }, /^compress cannot be true when max-file is less than 2 or max-size is not set$/],
  [{ compress: 'true', 'max-size': '1k' }, /^compress cannot be true/],
  [{ compress: 'true', 'max-file': '2' }, /^compress cannot be true/],
  [{ 'labels-regex': '(' }, /^invalid labels-regex: '\('$/],
  [{ 'env-regex': '[' }, /^invalid env-regex: '\['$/],
  [{ mode: 'lazy' }, /^logger: logging mode not supported: lazy$/],
  [{ 'max-buffer-size': '1m' }, /^logger: max-buffer-size option is only supported with 'mode=non-blocking'$/],
  [{ mode: 'non-blocking', 'max-buffer-size': 'x' }, /^error parsing option max-buffer-size: invalid size: 'x'$/],
  [{ tag: 'a {{.ID}} {{' }, /^invalid tag: template: unclosed action$/],
  [{ tag: '{{if .ID}}' }, /^invalid tag: template: \{\{if\}\} without \{\{end\}\}$/],
  [{ 'labels-regex': 'a(' }, /^invalid labels-regex: 'a\('$/],
];
for (const [options, message] of refused) {
  test(`${JSON.stringify(options)} is refused`, () => {
    const LogConfig = { Type: 'json-file', Config: options };

    assert.throws(() => logConfigOf({ LogConfig }, defaults), { kind: 'invalid', message });
  });
}

const taken: Record<string, string>[] = [
  { 'max-size': '1.5k', 'max-file': '3', compress: 'true' },
  { mode: 'non-blocking', 'max-buffer-size': '1m' },
  { tag: '{{.Name}}/{{ .ID }}', labels: 'a,b', 'env-regex': '^X' },
];
for (const options of taken) {
  test(`${JSON.stringify(options)} is taken as it is`, () => {
    const LogConfig = { Type: 'json-file', Config: options };

    assert.deepEqual(logConfigOf({ LogConfig }, defaults), LogConfig);
  });
}

for (const Type of ['etwlogs', 'gcplogs', 'nothing']) {
  test(`the driver ${Type} is refused`, () => {
    assert.throws(() => logConfigOf({ LogConfig: { Type } }, defaults), {
      kind: 'invalid',
      message: `error looking up logging plugin ${Type}: plugin "${Type}" not found`,
    });
  });
}

test('the driver none takes any options, as in dockerd', () => {
  const LogConfig = { Type: 'none', Config: { color: 'red', mode: 'lazy' } };

  assert.deepEqual(logConfigOf({ LogConfig }, defaults), LogConfig);
});

test("the daemon's options are for containers with its driver, and those of the cache for all", () => {
  const logOpts = { 'max-size': '1m', 'cache-disabled': 'true' };
  const configOf = (LogConfig: { Type?: string; Config?: Record<string, string> }): unknown =>
    logConfigOf({ LogConfig }, { logDriver: 'json-file', logOpts }).Config;

  assert.deepEqual(configOf({ Config: { 'max-file': '2' } }), { ...logOpts, 'max-file': '2' });
  assert.deepEqual(configOf({ Type: 'json-file', Config: { 'max-size': '2m' } }), { ...logOpts, 'max-size': '2m' });
  assert.deepEqual(configOf({ Type: 'syslog' }), { 'cache-disabled': 'true' });
});

test('sizes have the units of docker', () => {
  const sizes = ['10', '10b', '10k', '10KB', '2m', '2 MiB', '1.5g', '1t'].map(
    (size) => logSizes({ 'max-size': size }).maxBytes,
  );

  assert.deepEqual(sizes, [10, 10, 10_240, 10_240, 2 * MB, 2 * MB, 1536 * MB, 1024 * 1024 * MB]);
  assert.deepEqual(logSizes({}), { maxBytes: 0, maxFiles: 1 });
});
