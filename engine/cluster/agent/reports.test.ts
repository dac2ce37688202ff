import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { Database } from '../../db/database.ts';
import type { TaskState } from '../state/records.ts';
import type { ReportMessage } from '../wire/task-messages.ts';
import { Reports } from './reports.ts';
import { TaskStore } from './store.ts';

/** Reports of stored tasks to a leader that answers when the test says so. */
class Reporting implements Disposable {
  readonly sent: ReportMessage[] = [];
  readonly tasks: TaskStore;
  readonly reports: Reports;
  readonly #db = new Database(':memory:');
  readonly #timers = new Set<() => void>();

  constructor(...ids: string[]) {
    this.tasks = new TaskStore(this.#db);
    const clock = {
      now: () => Temporal.Instant.from('2026-01-01T00:00:00Z'),
      after: (_milliseconds: number, callback: () => void) => {
        this.#timers.add(callback);
        return { [Symbol.dispose]: () => void this.#timers.delete(callback) };
      },
    };
    this.reports = new Reports({ clock }, this.tasks);
    for (const id of ids) {
      this.tasks.put({
        id,
        service: 's',
        serviceName: 's',
        slot: 1,
        desired: 'running',
        template: 's/t',
        addresses: [],
        node: 'n',
        status: { state: 'assigned', timestamp: '', message: '' },
        acknowledged: true,
        needsAuth: false,
      });
    }
  }

  begin(): void {
    this.reports.begin((message) => this.sent.push(message));
  }

  enter(id: string, state: TaskState): void {
    this.tasks.change(id, (task) => ({ ...task, acknowledged: false, status: { ...task.status, state } }));
    this.reports.tell(id, state);
  }

  passHold(): void {
    for (const callback of [...this.#timers]) callback();
  }

  /** Reports since the last look, as `id state`. */
  async look(): Promise<string[][]> {
    await Promise.resolve();
    return this.sent.splice(0).map(({ tasks }) => tasks.map(({ id, status }) => `${id} ${status.state}`));
  }

  [Symbol.dispose](): void {
    this.reports[Symbol.dispose]();
    this.#db[Symbol.dispose]();
  }
}

suite('reports of a node', () => {
  test('a state that another one follows soon is not told', async () => {
    using node = new Reporting('a', 'b');
    node.begin();

    for (const state of ['accepted', 'preparing', 'ready', 'starting'] as const) node.enter('a', state);
    node.enter('b', 'preparing');
    assert.deepEqual(await node.look(), []);
    node.enter('a', 'running');
    assert.deepEqual(await node.look(), [['a running']]);
    node.reports.acknowledge(1);
    node.passHold();

    assert.deepEqual(await node.look(), [['b preparing']]);
  });

  test('states that arrive during a report form the next one, the newest of each', async () => {
    using node = new Reporting('a', 'b');
    node.begin();
    node.enter('a', 'running');
    await node.look();

    node.enter('b', 'running');
    node.enter('a', 'complete');
    node.enter('b', 'failed');
    assert.deepEqual(await node.look(), []);
    node.reports.acknowledge(1);

    assert.deepEqual(await node.look(), [['b failed', 'a complete']]);
  });

  test('states that no leader stored are reported in the next session; stored ones are not', async () => {
    using node = new Reporting('a', 'b');
    node.enter('a', 'running');
    node.enter('b', 'running');
    assert.deepEqual(await node.look(), []);
    node.begin();
    assert.deepEqual(await node.look(), [['a running', 'b running']]);

    node.begin(); // no answer: the leader has changed
    assert.deepEqual(await node.look(), [['a running', 'b running']]);
    node.enter('b', 'failed');
    node.reports.acknowledge(2);
    assert.deepEqual(await node.look(), [['b failed']]);
    node.begin();

    assert.deepEqual(await node.look(), [['b failed']]);
    assert.equal(node.tasks.get('a')?.acknowledged, true);
  });

  test('an answer to a report of an earlier session counts for nothing', async () => {
    using node = new Reporting('a');
    node.enter('a', 'running');
    node.begin();
    await node.look();
    node.begin();
    await node.look();

    node.reports.acknowledge(1);

    assert.equal(node.tasks.get('a')?.acknowledged, false);
  });

  test('long texts are shortened, and many of them divided among reports', async () => {
    const ids = Array.from({ length: 150 }, (_, at) => `t${at}`);
    using node = new Reporting(...ids);
    for (const id of ids) {
      node.enter(id, 'failed');
      node.tasks.change(id, (task) => ({ ...task, status: { ...task.status, error: '\u0001'.repeat(9000) } }));
    }

    node.begin();
    await Promise.resolve();

    const [report] = node.sent;
    assert.ok(report!.tasks.length < ids.length);
    assert.ok(JSON.stringify(report).length < 512 * 1024);
    assert.equal(report!.tasks[0]!.status.error?.length, 4096);
  });
});
