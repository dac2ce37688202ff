/** Checks docs/gateway-rules.md and docs/gateway-settings.md, as far as a program can tell whether they are true. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { LIMITS } from '@gantry/limiter/types.ts';

import { prometheusText } from './admin/prometheus.ts';
import { readConfig } from './config/read.ts';
import { settingsReference } from './config/reference.ts';
import { newCounts } from './metrics.ts';
import { CATEGORY_ROUTES } from './routes/defaults.ts';

const rules = readFileSync(join(dirname(import.meta.dirname), 'docs/gateway-rules.md'), 'utf8');
const examples = [...rules.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text = '']) => text);

test('the reference lists all settings as the schema has them', () => {
  const listed = readFileSync(join(dirname(import.meta.dirname), 'docs/gateway-settings.md'), 'utf8');

  assert.equal(listed, settingsReference(), 'run: node tools/gateway-reference.ts');
});

test('the dashboard for Grafana asks for metrics that there are', () => {
  const file = readFileSync(join(import.meta.dirname, 'grafana.json'), 'utf8');
  const served = new Set(
    [...prometheusText(newCounts(new RateLimiter().counts)).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name),
  );

  const asked = [...file.matchAll(/gantry_gateway_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ''));

  assert.ok(asked.length >= 10);
  assert.deepEqual(
    asked.filter((name) => !served.has(name)),
    [],
  );
});

test('every setting has a description', () => {
  const silent = settingsReference()
    .split('\n')
    .filter((line) => line.endsWith('|  |') || line.endsWith(': |'));

  assert.deepEqual(silent, []);
});

test('the examples of the rules are valid', async () => {
  await using undo = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gantry-guide-'));
  undo.defer(async () => await rm(folder, { recursive: true }));

  assert.ok(examples.length >= 5);
  for (const [index, text] of examples.entries()) {
    const file = join(folder, `${index}.yaml`);
    await writeFile(file, text);
    readConfig(file);
  }
});

test('the rules name every metric, limit and built-in route of a category', async () => {
  await using limiter = new RateLimiter();
  const metrics = [...prometheusText(newCounts(limiter.counts)).matchAll(/^# TYPE gantry_gateway_(\w+)/gm)];
  const routes = Object.values(CATEGORY_ROUTES).flat();
  const names = [...metrics.map(([, name = '']) => name), ...LIMITS, ...routes];

  const missing = names.filter((name) => !new RegExp(`\`${RegExp.escape(name)}[\`{]`).test(rules));

  assert.deepEqual(missing, ['primary']); // it is a chapter of its own
});
