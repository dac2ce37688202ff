import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { config, updated } from '@gantry/testing/cluster/simulated-update.ts';

import type { Draft } from '../state/draft.ts';

/** Records that no check lets in any more, by their fault. */
const FAULTS: Readonly<Record<string, (draft: Draft) => void>> = {
  'a task that started never': (draft) => {
    const { template } = draft.get('service', 'web')!;
    const task = [...draft.tasksOf('web')].find((one) => one.template === template)!;
    draft.put('task', { ...task, status: { ...task.status, state: 'failed', startedAt: 'never' } });
  },
  'a delay beyond all times': (draft) => {
    const service = draft.get('service', 'web')!;
    const update = { ...service.spec.update!, delayNs: 1e300 };
    draft.put('service', { ...service, spec: { ...service.spec, update } });
  },
  'a constraint that is none': (draft) => {
    const [template] = [...draft.all('template')].filter(({ service }) => service === 'web');
    draft.put('template', { ...template!, template: { ...template!.template, constraints: ['none'] } });
  },
};

suite('bad records', () => {
  for (const [fault, spoil] of Object.entries(FAULTS)) {
    test(`${fault} stops neither turns nor other services`, () => {
      const cluster = updated(config({ delayNs: 1e9, monitorNs: 60e9 }));
      cluster.settle(0);
      cluster.failures = [];

      cluster.change((draft) => spoil(draft));
      for (const id of ['a', 'b']) cluster.setNode(id, 'ready', 'pause'); // all nodes are looked at
      cluster.service('other', { mode: { kind: 'replicated', replicas: 2 } });
      cluster.settle(0);

      assert.equal(cluster.running('other').length, 2);
      assert.ok(cluster.failures.length > 0, 'the record is bad');
      cluster.remove('web');
      cluster.settle(0);
      assert.equal(cluster.tasks('web').filter(({ desired }) => desired === 'running').length, 0);
    });
  }
});
