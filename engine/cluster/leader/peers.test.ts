import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pino } from 'pino';

import { Background } from '../../lib/background.ts';
import { systemClock, type Clock } from '../../lib/clock.ts';
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

/** A clock without a minute: what would be given up then would keep the test waiting. */
const clock: Clock = {
  now: () => systemClock.now(),
  after: (milliseconds, callback) =>
    milliseconds < 60_000 ? systemClock.after(milliseconds, callback) : { [Symbol.dispose]: () => undefined },
};

type WireMember = { ID: string; name?: string; peerURLs: string[]; isLearner?: boolean };

/** The members of an etcd. It has one learner, an address once, and changes nothing while it is not healthy. */
class Members {
  isHealthy = true;
  #refused = Promise.withResolvers<void>();
  /** Of the next addition. */
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

/** The leader's part over a cluster of node `one`, in which `two` becomes a manager. */
function peersOver(etcd: Members, background: Background): { replica: Replica; add: () => Promise<PeerAnswer> } {
  const replica = new Replica(systemClock);
  const peerCa = newAuthority('peers', systemClock.now());
  const node = { id: 'two', status: { state: 'ready' } } as unknown as Stored<'node'>;
  const cluster = { id: 'cluster', peerCa, revokedPeers: [], spec: { raft: {} } } as unknown as Stored<'cluster'>;
  const changes: Change[] = [
    { kind: 'cluster', id: '', record: cluster },
    { kind: 'node', id: 'two', record: node },
  ];
  replica.apply({ revision: 1, changes });
  const turns = {
    write: async <T>(work: Work<T>) => {
      const draft = new Draft(replica);
      const result = work(draft, systemClock.now());
      const revision = replica.revision + 1;
      replica.apply({ revision, changes: [...draft.changes] });
      return await Promise.resolve({ result, revision });
    },
  } as unknown as Turns;
  const peers = new Peers({ background, clock, log, replica, turns, etcd: etcd as unknown as Etcd });
  const { publicKey } = newKey();
  const add = async (): Promise<PeerAnswer> =>
    await peers.add('two', { address: '10.0.0.2:2377', url: URL_OF_TWO, publicKey });
  return { replica, add };
}

test('a node that begins to join again while etcd refuses is added once, and its earlier attempt ends', async () => {
  await using background = new Background(clock, log);
  const etcd = new Members();
  const { replica, add } = peersOver(etcd, background);
  etcd.isHealthy = false;
  const earlier = assert.rejects(add(), { kind: 'unavailable', message: 'node two has begun to join again' });
  await etcd.refused();
  const later = add();
  await etcd.refused();

  etcd.isHealthy = true;

  await earlier;
  const { members } = await later;
  assert.deepEqual(members, [
    { name: 'one', peerUrl: URL_OF_ONE },
    { name: 'two', peerUrl: URL_OF_TWO },
  ]);
  assert.deepEqual(etcd.learners, [replica.get('node', 'two')!.manager!.member]);
});

test('an addition that etcd made and did not answer in time is made again', async () => {
  await using background = new Background(clock, log);
  const etcd = new Members();
  const { replica, add } = peersOver(etcd, background);
  etcd.isAnswerLost = true;

  const { members } = await add();

  assert.equal(members.length, 2);
  assert.deepEqual(etcd.learners, [replica.get('node', 'two')!.manager!.member]);
});
