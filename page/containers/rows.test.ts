import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Summary } from '@gantry/client/containers.ts';

import { visibleWindow } from '../parts/visible-window.ts';
import { rowsOf, type Row } from './rows.ts';
import { usageBetween } from './usage.ts';

function summary(name: string, more: object = {}): Summary {
  const one: unknown = {
    Id: `id-${name}`,
    Names: [`/${name}`],
    Image: 'busybox',
    Labels: {},
    State: 'running',
    Created: 1,
    ...more,
  };
  return one as Summary;
}

const project = (name: string): object => ({ Labels: { 'com.docker.compose.project': name } });
const all = new Map(
  [
    summary('b', { ...project('shop'), Created: 5 }),
    summary('a', { State: 'exited' }),
    summary('c', project('shop')),
    summary('t', { Labels: { 'com.docker.swarm.service.name': 'api' } }),
    summary('d', { Health: { Status: 'unhealthy', FailingStreak: 1 } }),
  ].map((one) => [one.Id, one]),
);
const VIEW = { search: '', shown: 'all', order: 'name', closed: new Set<string>() } as const;

function textOf(row: Row): string {
  return row.kind === 'group' ? `[${row.project}]` : row.container.Names[0]!.slice(1);
}

test('containers of a project or service are below its name, others last; search, filters and order choose among them', () => {
  const shown = (view: object): string =>
    rowsOf(all, new Map(), { ...VIEW, ...view })
      .map(textOf)
      .join(' ');

  assert.equal(shown({}), '[api] t [shop] b c [] a d');
  assert.equal(shown({ closed: new Set(['shop']) }), '[api] t [shop] [] a d');
  assert.equal(shown({ shown: 'stopped' }), 'a');
  assert.equal(shown({ shown: 'unhealthy' }), 'd');
  assert.equal(shown({ search: 'SHOP c' }), '[shop] c');
  assert.equal(shown({ search: 'nowhere' }), '');
  assert.equal(shown({ order: 'age' }), '[api] t [shop] b c [] a d');
});

test('rates are those between two lines; a container that is new has none yet', () => {
  const one = {
    Memory: 5,
    MemoryLimit: 10,
    NetworkReceived: 0,
    NetworkSent: 0,
    BlockRead: 0,
    BlockWritten: 0,
    PIDs: 1,
  };
  const before = { Read: '2026-01-01T00:00:00Z', SystemCPU: 0, CPUs: 2, Containers: [{ Id: 'x', CPU: 0, ...one }] };
  const now = {
    ...before,
    Read: '2026-01-01T00:00:02Z',
    SystemCPU: 4e9,
    Containers: [
      { Id: 'x', CPU: 1e9, ...one, NetworkReceived: 100 },
      { Id: 'new', CPU: 9e9, ...one },
    ],
  };

  const usages = usageBetween(before, now);

  assert.equal(usages.get('x')?.cpu, 50);
  assert.equal(usages.get('x')?.received, 50);
  assert.equal(usages.get('new')?.cpu, 0);
});

test('only the rows in view are drawn, whatever the number of rows', () => {
  assert.deepEqual(visibleWindow(0, 340, 34, 1000), { first: 0, end: 20 });
  assert.deepEqual(visibleWindow(17_000, 340, 34, 1000), { first: 490, end: 520 });
  assert.deepEqual(visibleWindow(99_999, 340, 34, 3), { first: 3, end: 3 });
});
