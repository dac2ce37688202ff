/** Checks docs/gateway.md, as far as a program can tell whether it is true. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { LIMITS } from '@gantry/limiter/types.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { prometheusText } from './admin/prometheus.ts';
import { readConfig } from './config/read.ts';
import { settingsReference } from './config/reference.ts';
import { newCounts } from './metrics.ts';
import { CATEGORY_ROUTES } from './routes/defaults.ts';

const guide = readFileSync(join(dirname(import.meta.dirname), 'docs/gateway.md'), 'utf8');
const examples = [...guide.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, text = '']) => text);

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

test('the examples of the guide are valid', async () => {
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

test('the first command of the guide has its settings in a file', () => {
  const [first = ''] = [...guide.matchAll(/^\$ (.*gantry gateway.*)$/gm)].map(([, command]) => command);

  assert.match(first, /gantry gateway --config \S+/);
});

test('the example for authors of clients limits as the guide says', async () => {
  await using upstream = await TestUpstream.start();
  const example = examples.find((text) => text.includes('windowSeconds: 4')) ?? '';
  const own = `listen: 127.0.0.1:0\nadmin: { socket: '{folder}/admin.sock' }\n`;
  await using gateway = await TestGateway.start(own + example.replace('http://127.0.0.1:3000', upstream.url));
  const query = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"{ a }"}' };

  const rest = [await gateway.request('/user'), await gateway.request('/user')];
  const graphql = [await gateway.request('/graphql', query), await gateway.request('/graphql', query)];

  assert.deepEqual(
    [...rest, ...graphql].map(({ status }) => status),
    [200, 403, 200, 403],
  );
  assert.match(rest[1]!.body, /#primary-rate-limits/);
  assert.match(graphql[1]!.body, /#secondary-rate-limits/);
});

test('the guide names every metric, limit and built-in route of a category', async () => {
  await using limiter = new RateLimiter();
  const metrics = [...prometheusText(newCounts(limiter.counts)).matchAll(/^# TYPE gantry_gateway_(\w+)/gm)];
  const routes = Object.values(CATEGORY_ROUTES).flat();
  const names = [...metrics.map(([, name = '']) => name), ...LIMITS, ...routes];

  const missing = names.filter((name) => !new RegExp(`\`${RegExp.escape(name)}[\`{]`).test(guide));

  assert.deepEqual(missing, ['primary']); // it is a chapter of its own
});
