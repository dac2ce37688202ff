import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, eventually, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { StoredRecords } from '@gantry/testing/cluster/stored-tasks.ts';

import type { TaskRecord, TaskTemplate } from '../state/records.ts';

const NOW = '2026-11-22T12:00:00Z';

suite('tasks on a node', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let host: ClusterHost;
  let node: string;
  let records: StoredRecords;
  before(async () => {
    hosts = await ClusterHosts.start(1, { image: true });
    host = hosts.hosts[0]!;
    node = await host.init();
    records = await StoredRecords.of(host);
  });
  after(async () => {
    await records[Symbol.asyncDispose]();
    await hosts[Symbol.asyncDispose]();
  });

  const service = async (name: string, template: TaskTemplate): Promise<void> => {
    await records.put('template', `${name}/t`, { service: name, hash: 't', template, networks: [] });
    await records.put('service', name, {
      id: name,
      createdAt: NOW,
      updatedAt: NOW,
      spec: { name, labels: {}, template, mode: { kind: 'replicated', replicas: 1 }, networks: [] },
      template: 't',
      endpoint: { ports: [], virtualIps: [] },
    });
  };
  const assign = async (id: string, name: string, over: Partial<TaskRecord> = {}): Promise<void> =>
    await records.put('task', id, {
      id,
      createdAt: NOW,
      updatedAt: NOW,
      service: name,
      slot: 1,
      node,
      template: 't',
      desired: 'running',
      status: { state: 'assigned', timestamp: NOW, message: '' },
      addresses: [],
      ...over,
    });
  const state = async (id: string, wanted: string): Promise<TaskRecord> =>
    await eventually(`task ${id} ${wanted}`, async () => {
      const task = await records.task(id);
      return task?.status.state === wanted ? task : undefined;
    });

  test('a task becomes a container, and its states get into its record', async () => {
    await service('web', { container: { image: 'busybox', args: ['sleep', '1000'] } });
    await assign('one', 'web');

    const { status } = await state('one', 'running');

    const { body } = await host.engine.get<{ Name: string; State: { Pid: number } }>('/containers/web.1.one/json');
    assert.equal(body.Name, '/web.1.one');
    assert.equal(status.message, 'started');
    assert.equal(status.container?.pid, body.State.Pid);
    await records.delete('task', 'one');
    await eventually('the container is gone', async () =>
      (await host.engine.get('/containers/web.1.one/json')).status === 404 ? true : undefined,
    );
  });
});
