import type { Logger } from 'pino';

import type { Clock } from '../../lib/clock.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import { raftOf, stepAside } from '../etcd/members.ts';
import type { Feed, LeaderKey } from '../state/feed.ts';
import { LEADER_KEY, SEQUENCE_KEY } from '../state/keys.ts';

const LEASE_SECONDS = 2;
const ROUND_MS = 500;
const ANSWER_MS = 1000;
/** Others are elected first after a resignation. */
const QUIET_MS = 3000;

type Needs = Readonly<{ clock: Clock; log: Logger; etcd: Etcd; feed: Feed }>;
type Settings = Readonly<{
  node: string;
  /** The address of its API for other nodes. */
  address: string;
  /** Whether another manager still answers as the leader. */
  ping: (leader: LeaderKey) => Promise<boolean>;
  /** From now on this node leads, by a transaction of this revision. */
  elected: (revision: number) => void;
  /** It leads no more. */
  ended: () => void;
}>;
type Held = { lease: string; revision: number; keptMs: number };

/**
 * The leader is the manager that put the key `leader`, which goes with its lease. Each half second it keeps its lease, and
 * the others ask whether it answers; when it fails twice, the manager whose etcd leads raft takes its place at once.
 * A leader that could not keep its lease stops leading before another can begin.
 */
export class Election implements AsyncDisposable {
  readonly #needs: Needs;
  readonly #settings: Settings;
  readonly #ending = Promise.withResolvers<void>();
  readonly #listener: Disposable;
  readonly #done: Promise<void>;
  #isEnding = false;
  #wake = Promise.withResolvers<void>();
  #held: Held | undefined;
  #failures = 0;
  #quietUntilMs = 0;

  constructor(needs: Needs, settings: Settings) {
    this.#needs = needs;
    this.#settings = settings;
    this.#listener = needs.feed.onLeader(() => this.#wake.resolve());
    this.#done = this.#run();
  }

  /** Of the transaction that made it the leader; undefined while it does not lead. */
  get revision(): number | undefined {
    return this.#held?.revision;
  }

  /** Whether no other manager can lead yet. */
  get isSure(): boolean {
    return this.#held !== undefined && performance.now() - this.#held.keptMs < LEASE_SECONDS * 1000;
  }

  /** Gives leadership up, and that of raft too, so that another takes both at once. */
  async resign(): Promise<void> {
    const held = this.#held;
    if (held === undefined) return;
    this.#quietUntilMs = performance.now() + QUIET_MS;
    this.#stepDown('it gives leadership up');
    try {
      await this.#needs.etcd.endLease(held.lease);
      await stepAside(this.#needs.etcd, ANSWER_MS);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#needs.log.info({ reason: error.message }, 'leadership ends with its lease');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#listener[Symbol.dispose]();
    this.#ending.resolve();
    await this.#done;
    await this.resign();
  }

  /** Called when the leader's batches were refused: another manager leads. */
  stepDown(reason: string): void {
    this.#stepDown(reason);
  }

  async #run(): Promise<void> {
    // A member that starts without a quorum tells no records, and this manager may end meanwhile.
    await Promise.race([this.#needs.feed.ready, this.#ending.promise]);
    while (!this.#isEnding) {
      try {
        await this.#round();
      } catch (error) {
        if (!(error instanceof EtcdError)) this.#needs.log.error({ err: error }, 'the election of a leader goes wrong');
      }
      if (this.#held !== undefined && !this.isSure) this.#stepDown('its lease could not be kept');
      const { promise, resolve } = Promise.withResolvers<void>();
      using _timer = this.#needs.clock.after(ROUND_MS, resolve);
      await Promise.race([promise, this.#wake.promise, this.#ending.promise]);
      this.#wake = Promise.withResolvers<void>();
    }
  }

  async #round(): Promise<void> {
    const { feed } = this.#needs;
    if (this.#held !== undefined) return await this.#keep(this.#held);
    const { leader } = feed;
    if (performance.now() < this.#quietUntilMs) return;
    if (leader === undefined) return await this.#campaign(0);
    if (leader.node === this.#settings.node) return await this.#campaign(leader.revision); // of our last daemon
    this.#failures = (await this.#settings.ping(leader)) ? 0 : this.#failures + 1;
    if (this.#failures < 2 || feed.leader?.revision !== leader.revision) return;
    const raft = await raftOf(this.#needs.etcd, ANSWER_MS);
    if (raft.self === raft.leader) await this.#campaign(leader.revision);
  }

  async #keep(held: Held): Promise<void> {
    const { leader } = this.#needs.feed;
    if (leader !== undefined && leader.revision > held.revision) return this.#stepDown('another manager leads');
    const asked = performance.now();
    const left = await this.#needs.etcd.keepLease(held.lease, ANSWER_MS);
    if (left > 0) held.keptMs = asked;
    else this.#stepDown('its lease is over');
  }

  /** Puts the key if it is as it was last seen; only one manager can. */
  async #campaign(overRevision: number): Promise<void> {
    const { etcd, log } = this.#needs;
    const { node, address } = this.#settings;
    const asked = performance.now();
    const lease = await etcd.grantLease(LEASE_SECONDS);
    const ops = [
      { put: LEADER_KEY, value: JSON.stringify({ node, address }), lease },
      { put: SEQUENCE_KEY, value: `${lease}/0` },
    ];
    const { succeeded, revision } = await etcd.store({ [LEADER_KEY]: overRevision }, ops, ANSWER_MS);
    if (!succeeded) return await etcd.endLease(lease);
    this.#failures = 0;
    this.#held = { lease, revision, keptMs: asked };
    log.info({ revision }, 'this manager leads the cluster');
    this.#settings.elected(revision);
  }

  #stepDown(reason: string): void {
    if (this.#held === undefined) return;
    this.#held = undefined;
    this.#needs.log.info({ reason }, 'this manager does not lead the cluster any more');
    this.#settings.ended();
  }
}
