import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { pino } from 'pino';

import { systemClock, type Clock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { newAuthority, newKey } from '../ca/certificates.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { Replica } from '../state/replica.ts';
import type { Change } from '../state/view.ts';
import type { PeerAnswer } from '../wire/schemas.ts';
import { Peers } from './peers.ts';
import type { Turns, Work } from './turns.ts';

const log = pino({ enabled: false });
const URL_OF_ONE = 'https://10.0.0.1:2378';
const URL_OF_TWO = 'https://10.0.0.2:2378';

/** A clock of which the test itself lets long times pass. */
class HeldClock implements Clock {
  readonly #held = new Map<() => void, number>();

  now(): Temporal.Instant {
    return systemClock.now();
  }

  after(milliseconds: number, callback: () => void): Disposable {
    if (milliseconds < 5000) return systemClock.after(milliseconds, callback);
    this.#held.set(callback, milliseconds);
    return { [Symbol.dispose]: () => void this.#held.delete(callback) };
  }

  /** Calls back who waits for that long at most. */
  pass(milliseconds: number): void {
    for (const [callback, wanted] of this.#held) {
      if (wanted > milliseconds) continue;
      this.#held.delete(callback);
      callback();
    }
  }
}

type WireMember = { ID: string; name?: string; peerURLs: string[]; isLearner?: boolean };

/** The members of an etcd. It has one learner, an address once, and changes nothing while it is not healthy. */
class Members {
  isHealthy = true;
  #refused = Promise.withResolvers<void>();
  /** Loses the answer of the next addition. */
  isAnswerLost = false;
  members: WireMember[] = [{ ID: '1', name: 'one', peerURLs: [URL_OF_ONE] }];
  #last = 1;

  get learners(): string[] {
    return this.members.filter(({ isLearner }) => isLearner).map(({ ID }) => ID);
  }

  /** Resolves at the next refusal. */
  async refused(): Promise<void> {
    this.#refused = Promise.withResolvers();
    await this.#refused.promise;
  }

  async call(path: string, body: Record<string, unknown>): Promise<Record<string, unknown>> {
    await Promise.resolve();
    if (path.endsWith('/list')) return { members: [...this.members] };
    if (path.endsWith('/remove')) this.members = this.members.filter(({ ID }) => ID !== body['ID']);
    if (!path.endsWith('/add')) return {};
    const [url] = body['peerURLs'] as string[];
    if (!this.isHealthy) this.#refuse('etcdserver: unhealthy cluster');
    if (this.members.some(({ peerURLs }) => peerURLs.includes(url!)))
      this.#refuse('etcdserver: Peer URLs already exists');
    if (this.members.some(({ isLearner }) => isLearner))
      this.#refuse('etcdserver: too many learner members in cluster');
    this.#last += 1;
    const member = { ID: String(this.#last), peerURLs: [url!], isLearner: true };
    this.members.push(member);
    if (this.isAnswerLost) {
      this.isAnswerLost = false;
      this.#refuse('no answer');
    }
    return { member, members: [...this.members] };
  }

  #refuse(message: string): never {
    this.#refused.resolve();
    throw new EtcdError(9, message);
  }
}

type State = 'ready' | 'down';

/** The leader's part over a cluster of node `one`, in which `two` becomes a manager. */
class Leading implements AsyncDisposable {
  readonly etcd = new Members();
  readonly clock = new HeldClock();
  readonly replica = new Replica(systemClock);
  readonly greetedAgain: string[] = [];
  readonly peers: Peers;
  readonly #background = new Background(this.clock, log);

  constructor() {
    const peerCa = newAuthority('peers', systemClock.now());
    const node = { id: 'two', spec: { role: 'manager' }, status: { state: 'ready' } } as unknown as Stored<'node'>;
    const cluster = { id: 'cluster', peerCa, revokedPeers: [], spec: { raft: {} } } as unknown as Stored<'cluster'>;
    const changes: Change[] = [
      { kind: 'cluster', id: '', record: cluster },
      { kind: 'node', id: 'two', record: node },
    ];
    this.replica.apply({ revision: 1, changes });
    this.peers = new Peers({
      ...{ background: this.#background, clock: this.clock, log, replica: this.replica },
      etcd: this.etcd as unknown as Etcd,
      turns: { write: async <T>(work: Work<T>) => await Promise.resolve(this.#write(work)) } as unknown as Turns,
      knownDataKey: () => undefined,
      greetAgain: (id) => this.greetedAgain.push(id),
    });
  }

  async add(): Promise<PeerAnswer> {
    const { publicKey } = newKey();
    return await this.peers.add('two', { address: '10.0.0.2:2377', url: URL_OF_TWO, publicKey });
  }

  /** The record of the node that becomes a manager. */
  get manager(): Stored<'node'>['manager'] {
    return this.replica.get('node', 'two')!.manager;
  }

  become(state: State): void {
    this.#write((draft) => {
      const node = draft.get('node', 'two')!;
      draft.put('node', { ...node, status: { ...node.status, state } });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.peers[Symbol.dispose]();
    await this.#background[Symbol.asyncDispose]();
  }

  #write<T>(work: Work<T>): { result: T; revision: number } {
    const draft = new Draft(this.replica);
    const result = work(draft, systemClock.now());
    const revision = this.replica.revision + 1;
    this.replica.apply({ revision, changes: [...draft.changes] });
    return { result, revision };
  }
}

test('a node that begins to join again while etcd refuses is added once, and its earlier attempt ends', async () => {
  await using leading = new Leading();
  const { etcd } = leading;
  etcd.isHealthy = false;
  const earlier = assert.rejects(leading.add(), { kind: 'unavailable', message: 'node two has begun to join again' });
  await etcd.refused();
  const later = leading.add();
  await etcd.refused();

  etcd.isHealthy = true;

  await earlier;
  const { members } = await later;
  assert.deepEqual(members, [
    { name: 'one', peerUrl: URL_OF_ONE },
    { name: 'two', peerUrl: URL_OF_TWO },
  ]);
  assert.deepEqual(etcd.learners, [leading.manager!.member]);
});

test('an addition that etcd made and did not answer in time is made again', async () => {
  await using leading = new Leading();
  const { etcd } = leading;
  etcd.isAnswerLost = true;

  const { members } = await leading.add();

  assert.equal(members.length, 2);
  assert.deepEqual(etcd.learners, [leading.manager!.member]);
});

suite('the time of a learner', () => {
  test('it is over: the learner is removed, and its node is told', async () => {
    await using leading = new Leading();
    await leading.add();

    leading.clock.pass(299_000);
    await sleep(50);
    assert.equal(leading.etcd.learners.length, 1);
    leading.clock.pass(300_000);

    while (leading.greetedAgain.length === 0) await sleep(10);
    assert.deepEqual([leading.etcd.learners, leading.manager, leading.greetedAgain], [[], undefined, ['two']]);
  });

  test('it is over for one that has got a vote, though no answer said so: it stays', async () => {
    await using leading = new Leading();
    await leading.add();
    leading.etcd.members.forEach((member) => delete member.isLearner);

    leading.clock.pass(300_000);

    while (leading.manager!.isLearning === true) await sleep(10);
    assert.deepEqual([leading.etcd.members.length, leading.greetedAgain], [2, []]);
  });

  test('it is over when another leads: nothing is removed', async () => {
    await using leading = new Leading();
    await leading.add();

    leading.peers[Symbol.dispose]();
    leading.clock.pass(300_000);
    await sleep(100);

    assert.equal(leading.etcd.learners.length, 1);
    assert.equal(leading.manager!.isLearning, true);
  });

  test('its node is down for a moment: it goes on; for ten seconds: it is removed', async () => {
    await using leading = new Leading();
    await leading.add();

    leading.become('down');
    leading.become('ready');
    leading.clock.pass(10_000);
    await sleep(100);
    assert.equal(leading.etcd.learners.length, 1);

    leading.become('down');
    leading.clock.pass(10_000);
    while (leading.greetedAgain.length === 0) await sleep(10);
    assert.deepEqual([leading.etcd.learners, leading.manager], [[], undefined]);
  });
});
