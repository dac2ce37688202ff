import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { pino } from 'pino';

import { systemClock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import type { NodeRole, Stored } from '../state/records.ts';
import { Replica } from '../state/replica.ts';
import type { Change } from '../state/view.ts';
import type { Batches } from './batches.ts';
import { Roles } from './roles.ts';
import { Turns } from './turns.ts';

const log = pino({ enabled: false });

/** The leader's part over a cluster of the managers `one`, which leads, `two` and `three`. */
class Leading implements AsyncDisposable {
  readonly replica = new Replica(systemClock);
  readonly told: string[] = [];
  readonly refusals = new Map<string, number>();
  /** Called before an etcd is removed. */
  beforeRemoval: (node: string) => Promise<void> = async () => {};
  readonly #background = new Background(systemClock, log);
  readonly #turns: Turns;
  readonly roles: Roles;

  constructor() {
    const { replica } = this;
    const changes = ['one', 'two', 'three'].map((id): Change => {
      const node = { id, role: 'manager', spec: { role: 'manager' }, status: { state: 'ready' } };
      return { kind: 'node', id, record: node as unknown as Stored<'node'> };
    });
    replica.apply({ revision: 1, changes });
    const batches: Pick<Batches, 'store'> = {
      store: async (stored, tell) => {
        await Promise.resolve();
        tell(replica.revision + 1, [...stored]);
      },
    };
    this.#turns = new Turns(
      {
        ...{ replica, log, batches: batches as Batches, clock: systemClock },
        decisions: () => ({ run: () => undefined }),
      },
      ({ message }) => assert.fail(message),
    );
    this.roles = new Roles({
      ...{ replica, background: this.#background, turns: this.#turns, node: 'one' },
      resign: async () => await Promise.resolve(),
      removePeer: async (node) => await this.#remove(node),
      tell: (node, role) => this.told.push(`${node} ${role}`),
    });
  }

  async want(role: NodeRole, ...nodes: string[]): Promise<void> {
    await this.#turns.write((draft) => {
      for (const id of nodes) {
        const node = draft.get('node', id)!;
        draft.put('node', { ...node, spec: { ...node.spec, role } });
      }
    });
  }

  /** Resolves when nodes have these roles. */
  async have(role: NodeRole, ...nodes: string[]): Promise<void> {
    await this.#until(() => nodes.every((id) => this.replica.get('node', id)!.role === role));
  }

  /** Messages to nodes, as soon as there are so many. */
  async tellings(count: number): Promise<string[]> {
    await this.#until(() => this.told.length >= count);
    return this.told;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.roles[Symbol.dispose]();
    await this.#background[Symbol.asyncDispose]();
    await this.#turns[Symbol.asyncDispose]();
  }

  async #until(isSo: () => boolean): Promise<void> {
    for (let left = 400; !isSo(); left -= 1) {
      assert.ok(left > 0, `it did not come about: ${this.told.join(', ')}`);
      await sleep(5);
    }
  }

  async #remove(node: string): Promise<void> {
    await this.beforeRemoval(node);
    const left = this.refusals.get(node) ?? 0;
    this.refusals.set(node, left - 1);
    if (left > 0) throw new Error('etcdserver: unhealthy cluster');
  }
}

test('a removal that etcd refuses is tried again, though no record changes, and holds up no other node', async () => {
  await using leading = new Leading();
  leading.refusals.set('two', 2);

  await leading.want('worker', 'two', 'three');

  await leading.have('worker', 'two', 'three');
  assert.deepEqual(await leading.tellings(2), ['three worker', 'two worker']);
});

test('a role that changes again while another node is followed is followed too', async () => {
  await using leading = new Leading();
  const isToGoOn = Promise.withResolvers<void>();
  leading.beforeRemoval = async (node) => await (node === 'three' ? isToGoOn.promise : undefined);
  await leading.want('worker', 'two', 'three');
  await leading.have('worker', 'two');

  await leading.want('manager', 'two');
  isToGoOn.resolve();

  await leading.have('worker', 'three');
  assert.deepEqual(await leading.tellings(3), ['two worker', 'three worker', 'two manager']);
});

test('a leader that leads no more tries nothing again', async () => {
  await using leading = new Leading();
  leading.refusals.set('two', 1);
  const refused = Promise.withResolvers<void>();
  leading.beforeRemoval = async () => await Promise.resolve(refused.resolve());
  await leading.want('worker', 'two');
  await refused.promise;

  leading.roles[Symbol.dispose]();

  await sleep(300);
  assert.deepEqual([leading.refusals.get('two'), leading.told], [0, []]);
});
