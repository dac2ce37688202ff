import type { Engine } from '../../engine.ts';
import { settlesWithin, sleep } from '../../lib/clock.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { EngineError } from '../../lib/errors.ts';
import { issue, revocationList, serialOf } from '../ca/certificates.ts';
import { EtcdError, type Etcd } from '../etcd/gateway.ts';
import { addLearner, listMembers, promoteMember, removeMember } from '../etcd/members.ts';
import type { Member } from '../etcd/messages.ts';
import type { Draft } from '../state/draft.ts';
import type { ClusterRecord } from '../state/records.ts';
import type { Replica } from '../state/replica.ts';
import { clusterOf } from '../state/view.ts';
import type { PeerAnswer } from '../wire/schemas.ts';
import type { Turns } from './turns.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'log'> &
  Readonly<{
    etcd: Etcd;
    replica: Replica;
    turns: Turns;
    /** The key of secrets and configs, if this manager has it. */
    knownDataKey: () => Buffer | undefined;
    /** Ends the session of a node, which is greeted anew, and told what it is now. */
    greetAgain: (node: string) => void;
  }>;
type Request = Readonly<{ address: string; url: string; publicKey: string }>;
type Learner = Readonly<{ node: string; member: string; done: PromiseWithResolvers<void> }>;

const YEARS_20_SECONDS = 20 * 365 * 24 * 3600;
const QUEUE_TIMEOUT_MS = 60_000;
/** Long enough for a slow machine that starts an etcd. */
const LEARN_TIMEOUT_MS = 300_000;
/** A node that is down for a moment, as on a slow machine, goes on. */
const DOWN_MS = 10_000;
const PROMOTION_TIMEOUT_MS = 50_000;
const RETRY_DELAY_MS = 100;

/**
 * The etcds of new managers on their way to membership, one after the other: etcd has one learner at a time. One that is
 * not a member within five minutes, or whose node is down for ten seconds, is removed again.
 */
export class Peers implements Disposable {
  readonly #needs: Needs;
  readonly #commits: Disposable;
  #learner: Learner | undefined;
  #isPromoting = false;
  #isLooking = false;
  #isOver = false;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#commits = needs.replica.onCommit(() => this.#look());
    needs.background.run('take over learners of an earlier leader', {}, async () => await this.#takeOver());
  }

  /** Adds a manager's etcd as a learner, as soon as it is its turn. */
  async add(node: string, { address, url, publicKey }: Request): Promise<PeerAnswer> {
    const turn = await this.#takeTurn(node);
    try {
      const { clock, etcd, knownDataKey, replica, turns } = this.#needs;
      const cluster = clusterOf(replica);
      const certificate = peerCertificate(cluster, node, new URL(url).hostname, publicKey, clock.now());
      const { id, members } = await this.#retried(async () => {
        await this.#removeFormer(turn, url);
        return await addLearner(etcd, url);
      }, QUEUE_TIMEOUT_MS);
      this.#checkTurn(turn);
      this.#learner = { ...turn, member: id };
      this.#giveUpLater(this.#learner);
      await turns.write((draft, now) => {
        const record = draft.get('node', node);
        if (record === undefined) throw new EngineError('notFound', `node ${node} not found`);
        const manager = { address, member: id, peerSerial: serialOf(certificate), isLearning: true as const };
        draft.put('node', { ...record, manager, updatedAt: now.toString() });
      });
      const answer = peerAnswer(clusterOf(replica), membersWith(members, { id, name: node }), certificate, clock.now());
      const { unlockKey } = clusterOf(replica);
      const dataKey = knownDataKey()?.toString('base64');
      return unlockKey === undefined || dataKey === undefined ? answer : { ...answer, unlockKey, dataKey };
    } catch (error) {
      this.#release(turn);
      throw error;
    }
  }

  /** Promotes it to a voting member, as soon as it has caught up. */
  async promote(node: string): Promise<void> {
    const member = this.#needs.replica.get('node', node)?.manager?.member;
    if (member === undefined) throw new EngineError('notFound', `the etcd of node ${node} is no learner`);
    this.#isPromoting = true;
    try {
      await this.#retried(async () => await this.#promoteOrFind(member), PROMOTION_TIMEOUT_MS);
    } finally {
      this.#isPromoting = false;
    }
    if (this.#learner?.node === node) this.#release(this.#learner);
    await this.#needs.turns.write((draft, now) => noteVoter(draft, node, now));
  }

  /** etcd refuses to promote a member that votes: one whose promotion was done, but not answered in time. */
  async #promoteOrFind(member: string): Promise<void> {
    const { etcd } = this.#needs;
    try {
      await promoteMember(etcd, member);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      const found = (await listMembers(etcd)).find(({ id }) => id === member);
      if (found === undefined || found.isLearner) throw error;
    }
  }

  /** Removes a manager's etcd and revokes its certificate. The record of the node stays a manager's until then. */
  async remove(node: string): Promise<void> {
    const { manager } = this.#needs.replica.get('node', node) ?? {};
    if (manager !== undefined) await this.#remove(node, manager.member);
    if (this.#learner?.member === manager?.member) this.#release(this.#learner);
  }

  async #remove(node: string, member: string): Promise<void> {
    const { etcd, turns } = this.#needs;
    await this.#retried(async () => await removeIfThere(etcd, member), 5000);
    await turns.write((draft, now) => {
      if (draft.get('node', node)?.manager?.member === member) revoke(draft, node, now);
    });
  }

  /** Another may lead from now on: this one removes nothing more. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#commits[Symbol.dispose]();
  }

  /** A machine that is lost while it joins does not keep the next one waiting for minutes. */
  #look(): void {
    const learner = this.#learner;
    if (learner === undefined || this.#isLooking || !this.#isDown(learner)) return;
    this.#isLooking = true;
    this.#giveUpLater(learner, DOWN_MS, () => {
      this.#isLooking = false;
      if (this.#learner?.done !== learner.done) this.#look(); // at the next one
      return this.#isDown(learner);
    });
  }

  #isDown({ node }: Learner): boolean {
    return this.#needs.replica.get('node', node)?.status.state === 'down';
  }

  async #takeTurn(node: string): Promise<Learner> {
    const until = performance.now() + QUEUE_TIMEOUT_MS;
    if (this.#learner?.node === node) {
      this.#release(this.#learner); // it begins again, after those who wait
      await sleep(this.#needs.clock, 0);
    }
    while (this.#learner !== undefined) {
      const left = until - performance.now();
      if (left <= 0) throw new EngineError('unavailable', 'other managers are joining the cluster: try again');
      await settlesWithin(this.#learner.done.promise, left / 1000, this.#needs.clock);
    }
    this.#learner = { node, member: '', done: Promise.withResolvers() };
    return this.#learner;
  }

  #release(learner: Learner | undefined): void {
    if (this.#learner?.done !== learner?.done) return;
    this.#learner?.done.resolve();
    this.#learner = undefined;
  }

  /** A node that begins again ends its earlier attempt, which may still be asking etcd. */
  #checkTurn({ node, done }: Learner): void {
    if (this.#learner?.done !== done) throw new EngineError('unavailable', `node ${node} has begun to join again`);
  }

  /** An attempt that was cut off may have left a learner with the same address, or an older member of the node. */
  async #removeFormer(turn: Learner, url: string): Promise<void> {
    const { etcd } = this.#needs;
    const { node } = turn;
    const members = await listMembers(etcd);
    this.#checkTurn(turn); // a learner in this list may be that of the attempt which followed
    const former = members.filter(
      ({ name, peerUrls, isLearner }) => name === node || (isLearner && peerUrls.includes(url)),
    );
    for (const { id } of former) await removeIfThere(etcd, id);
  }

  #giveUpLater(learner: Learner, milliseconds = LEARN_TIMEOUT_MS, isWanted = (): boolean => true): void {
    const { node } = learner;
    const { background, clock } = this.#needs;
    clock.after(milliseconds, () => {
      if (isWanted()) background.untilDone('give up a learner', { node }, async () => await this.#giveUp(learner));
    });
  }

  async #giveUp(learner: Learner): Promise<void> {
    const { node, member } = learner;
    while (this.#isPromoting) await sleep(this.#needs.clock, RETRY_DELAY_MS);
    if (this.#isOver) return;
    const found = (await listMembers(this.#needs.etcd)).find(({ id }) => id === member);
    if (this.#learner?.done !== learner.done || this.#isOver) return;
    if (found?.isLearner === false) {
      await this.#needs.turns.write((draft, now) => noteVoter(draft, node, now));
    } else {
      this.#needs.log.warn({ node }, 'the etcd of a new manager was not promoted in time, removing it');
      await this.#remove(node, member);
      this.#needs.greetAgain(node);
    }
    this.#release(learner);
  }

  /**
   * A learner of an earlier leader has its time again if its node is known; others are removed. One that the earlier leader
   * promoted without a note of that votes; one that it removed without a note of that begins again.
   */
  async #takeOver(): Promise<void> {
    const { etcd, replica, turns } = this.#needs;
    const turn = await this.#takeTurn('');
    try {
      const members = await this.#retried(async () => await listMembers(etcd), QUEUE_TIMEOUT_MS);
      const known = new Map(replica.all('node').map((node) => [node.manager?.member, node.id]));
      const voters = new Set(members.filter(({ isLearner }) => !isLearner).map(({ id }) => id));
      const unnoted = [...replica.all('node')].filter(
        ({ manager }) => manager?.isLearning && voters.has(manager.member),
      );
      for (const { id } of unnoted) await turns.write((draft, now) => noteVoter(draft, id, now));
      const there = new Set(members.map(({ id }) => id));
      const removed = [...replica.all('node')].filter(
        ({ manager }) => manager !== undefined && !there.has(manager.member),
      );
      for (const { id } of removed) {
        await turns.write((draft, now) => revoke(draft, id, now));
        this.#needs.greetAgain(id);
      }
      for (const { id } of members.filter(({ isLearner }) => isLearner)) {
        const node = known.get(id);
        if (node === undefined) await removeIfThere(etcd, id);
        else this.#giveUpLater((this.#learner = { ...turn, node, member: id }));
      }
    } finally {
      if (this.#learner?.node === '') this.#release(turn);
    }
    this.#look();
  }

  /** etcd refuses for seconds after a change of members, and while a learner has not caught up. */
  async #retried<T>(attempt: () => Promise<T>, timeoutMs: number): Promise<T> {
    try {
      return await retry({ clock: this.#needs.clock, timeoutMs, delayMs: RETRY_DELAY_MS, isTransient }, attempt);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      throw new EngineError('unavailable', `etcd: ${error.message}`, { cause: error });
    }
  }
}

function noteVoter(draft: Draft, id: string, now: Temporal.Instant): void {
  const node = draft.get('node', id);
  if (node?.manager?.isLearning === undefined) return;
  const { isLearning: _isLearning, ...manager } = node.manager;
  draft.put('node', { ...node, manager, updatedAt: now.toString() });
}

/** The certificate of a manager's etcd for its peers, in PEM. */
export function peerCertificate(
  { peerCa, id }: Pick<ClusterRecord, 'peerCa' | 'id'>,
  node: string,
  ip: string,
  publicKey: string,
  now: Temporal.Instant,
): string {
  const addresses = [ip.replaceAll(/[[\]]/g, '')];
  return issue(peerCa, {
    subject: { name: node, organization: id },
    publicKey,
    now,
    lifeSeconds: YEARS_20_SECONDS,
    addresses,
  });
}

/** Revokes the peer certificate of a former manager. */
export function revoke(draft: Draft, id: string, now: Temporal.Instant): void {
  const node = draft.get('node', id);
  if (node?.manager === undefined) return;
  const { manager, ...rest } = node;
  const second = Math.floor(now.epochMilliseconds / 1000);
  const cluster = clusterOf(draft);
  const revoked = { serial: manager.peerSerial, expires: second + YEARS_20_SECONDS, revoked: second };
  draft.put('cluster', { ...cluster, revokedPeers: [...cluster.revokedPeers, revoked] });
  draft.put('node', { ...rest, role: node.spec.role, updatedAt: now.toString() });
}

async function removeIfThere(etcd: Etcd, member: string): Promise<void> {
  try {
    await removeMember(etcd, member);
  } catch (error) {
    const NOT_FOUND = 5;
    if (!(error instanceof EtcdError) || error.code !== NOT_FOUND) throw error;
  }
}

function membersWith(
  members: readonly Member[],
  learner: { id: string; name: string },
): { name: string; peerUrl: string }[] {
  return members.flatMap(({ id, name, peerUrls }) =>
    peerUrls.map((peerUrl) => ({ name: id === learner.id ? learner.name : name, peerUrl })),
  );
}

function peerAnswer(
  cluster: ClusterRecord,
  members: PeerAnswer['members'],
  certificate: string,
  now: Temporal.Instant,
): PeerAnswer {
  const crl = revocationList(cluster.peerCa, cluster.revokedPeers, now).toString('base64');
  return { members, certificate, ca: cluster.peerCa.certificate, crl, raft: cluster.spec.raft };
}

function isTransient(error: unknown): boolean {
  return error instanceof EtcdError;
}
