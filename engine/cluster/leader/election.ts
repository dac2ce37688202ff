import type { Engine } from '../../engine.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import { raftOf, stepAside } from '../etcd/members.ts';
import type { Op } from '../etcd/messages.ts';
import type { Feed, LeaderKey } from '../state/feed.ts';
import { LEADER_KEY, SEQUENCE_KEY } from '../state/keys.ts';

const LEASE_SECONDS = 2;
const MAX_LEASE_SECONDS = 32;
/** After so long without a loss the lease is the usual one again. */
const CALM_MS = 600_000;
const ROUND_INTERVAL_MS = 500;
const ANSWER_TIMEOUT_MS = 1000;
const MAX_PING_MS = 10_000;
/** Others are elected first after a resignation. */
const QUIET_MS = 3000;

type Needs = Pick<Engine, 'clock' | 'log'> & Readonly<{ etcd: Etcd; feed: Feed }>;
type Settings = Readonly<{
  node: string;
  /** The address of its API for other nodes. */
  address: string;
  /** Whether another manager still answers as the leader, in this time. */
  ping: (leader: LeaderKey, milliseconds: number) => Promise<boolean>;
  /** From now on this node leads, by a transaction of this revision. */
  elected: (revision: number, leaseMs: number) => void;
  /** It leads no more. */
  ended: () => void;
}>;
type Held = { lease: string; leaseMs: number; revision: number; keptMs: number };

/**
 * The leader is the manager that put the key `leader`, which goes with its lease. Each half second it keeps its lease, and
 * the others ask whether it answers; when it fails twice, the manager whose etcd leads raft takes its place at once.
 * A leader that could not keep its lease stops leading before another can begin.
 *
 * On a machine that is slow, or has too much to do, these times would change the leader again and again: who has lost
 * leadership takes a lease of twice the length, the others one that is not shorter than his; a leader that has a longer lease, or
 * has always answered late, is waited for longer.
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
  /** Seconds of the next lease. */
  #leaseSeconds = LEASE_SECONDS;
  #lostMs = 0;
  /** Slowest of the answers to pings; it gets shorter by a tenth with each. */
  #slowestPingMs = 0;
  #quietUntilMs = 0;

  constructor(needs: Needs, settings: Settings) {
    this.#needs = needs;
    this.#settings = settings;
    this.#listener = needs.feed.onLeader(() => this.#wake.resolve());
    this.#done = this.#run();
  }

  /** Revision of the transaction that made it the leader; undefined while it does not lead. */
  get revision(): number | undefined {
    return this.#held?.revision;
  }

  /** Whether its lease was kept so lately that its records are the cluster's. */
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
      await stepAside(this.#needs.etcd, ANSWER_TIMEOUT_MS);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      this.#needs.log.info({ reason: error.message }, 'leadership ends with its lease');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#listener[Symbol.dispose]();
    this.#ending.resolve();
    this.#wake.resolve();
    await this.#done;
    await this.resign();
  }

  /** Called when the leader's batches were refused, as another manager leads, or had no answer. */
  stepDown(reason: string): void {
    this.#lose(reason);
  }

  async #run(): Promise<void> {
    // A member that starts without a quorum tells no records, and this manager may end meanwhile.
    await Promise.race([this.#needs.feed.ready, this.#ending.promise]);
    while (!this.#isEnding) {
      try {
        await this.#round();
      } catch (error) {
        if (!(error instanceof EtcdError)) this.#needs.log.error({ err: error }, 'leader election failed, retrying');
      }
      const held = this.#held;
      if (held !== undefined && performance.now() - held.keptMs >= held.leaseMs) {
        this.#lose('its lease could not be kept');
      }
      await settlesWithin(this.#wake.promise, ROUND_INTERVAL_MS / 1000, this.#needs.clock);
      this.#wake = Promise.withResolvers<void>();
    }
  }

  async #round(): Promise<void> {
    const { feed } = this.#needs;
    if (this.#held !== undefined) return await this.#keep(this.#held);
    const { leader } = feed;
    if (performance.now() < this.#quietUntilMs) return;
    if (leader === undefined) return await this.#campaign(0);
    if (leader.leaseSeconds > this.#leaseSeconds) this.#takeLease(leader.leaseSeconds);
    if (leader.node === this.#settings.node) return await this.#campaign(leader.revision); // of our last daemon
    this.#failures = (await this.#answers(leader)) ? 0 : this.#failures + 1;
    if (this.#failures < 2 || feed.leader?.revision !== leader.revision) return;
    const raft = await raftOf(this.#needs.etcd, ANSWER_TIMEOUT_MS);
    if (raft.self === raft.leader) await this.#campaign(leader.revision);
  }

  async #answers(leader: LeaderKey): Promise<boolean> {
    const usual = Math.max(ANSWER_TIMEOUT_MS, this.#slowestPingMs * 4, (leader.leaseSeconds * 1000) / 2);
    const milliseconds = Math.min(usual, MAX_PING_MS);
    const asked = performance.now();
    const answers = await this.#settings.ping(leader, milliseconds);
    if (answers) this.#slowestPingMs = Math.max(performance.now() - asked, this.#slowestPingMs * 0.9);
    return answers;
  }

  async #keep(held: Held): Promise<void> {
    const { leader } = this.#needs.feed;
    if (leader !== undefined && leader.revision > held.revision) return this.#stepDown('another manager leads');
    const asked = performance.now();
    const left = await this.#needs.etcd.keepLease(held.lease, answerMs(held.leaseMs));
    if (left > 0) held.keptMs = asked;
    else this.#lose('its lease is over');
  }

  /** Puts the key if it is as it was last seen; only one manager can. */
  async #campaign(overRevision: number): Promise<void> {
    const { etcd, log } = this.#needs;
    const { node, address } = this.#settings;
    const asked = performance.now();
    if (asked - this.#lostMs > CALM_MS) this.#leaseSeconds = LEASE_SECONDS;
    const leaseMs = this.#leaseSeconds * 1000;
    const lease = await etcd.grantLease(this.#leaseSeconds);
    const ops = [
      { put: LEADER_KEY, value: JSON.stringify({ node, address, leaseSeconds: this.#leaseSeconds }), lease },
      { put: SEQUENCE_KEY, value: `${lease}/0` },
    ];
    const { succeeded, revision } = await this.#puts({ [LEADER_KEY]: overRevision }, ops, leaseMs);
    if (!succeeded) return await etcd.endLease(lease);
    this.#failures = 0;
    this.#held = { lease, leaseMs, revision, keptMs: asked };
    log.info({ revision, leaseSeconds: leaseMs / 1000 }, 'this manager leads the cluster');
    this.#settings.elected(revision, leaseMs);
  }

  async #puts(fence: Record<string, number>, ops: Op[], leaseMs: number): ReturnType<Etcd['store']> {
    try {
      return await this.#needs.etcd.store(fence, ops, answerMs(leaseMs));
    } catch (error) {
      this.#takeLonger();
      throw error;
    }
  }

  #lose(reason: string): void {
    this.#takeLonger();
    this.#stepDown(reason);
  }

  #takeLonger(): void {
    this.#takeLease(Math.min(this.#leaseSeconds * 2, MAX_LEASE_SECONDS));
  }

  #takeLease(seconds: number): void {
    this.#leaseSeconds = seconds;
    this.#lostMs = performance.now();
  }

  #stepDown(reason: string): void {
    if (this.#held === undefined) return;
    this.#held = undefined;
    this.#needs.log.info({ reason }, 'this manager no longer leads the cluster');
    this.#settings.ended();
  }
}

/** A third of the lease, so that it can be asked for again. */
function answerMs(leaseMs: number): number {
  return Math.max(ANSWER_TIMEOUT_MS, leaseMs / 3);
}
