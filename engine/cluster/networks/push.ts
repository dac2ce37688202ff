import { settlesWithin, sleep, type Clock } from '../../lib/clock.ts';
import { SharedRuns } from '../../lib/concurrency/shared-runs.ts';
import type { Unattached } from '../../networks/overlay/members/attachment.ts';
import type { Member, NetworkNews } from '../../networks/overlay/members/members.ts';
import type { Replica } from '../state/replica.ts';
import type { Change } from '../state/view.ts';
import { hostOf, networkForNodes, Topology } from './topology.ts';

/** A message to a node: news of one of its networks, the ids of all of them, or the question whether it has heard all. */
export type NetworkMessage =
  | { say: 'network'; news: NetworkNews }
  | { say: 'networks'; ids: string[] }
  | { say: 'sync'; number: number }
  | ({ say: 'unattached' } & Unattached);
type Send = (message: NetworkMessage) => void;
type Session = Readonly<{ send: Send; known: Set<string>; canSync: boolean }> & {
  /** Whether it has heard all, which it has not answered yet. */
  question?: Readonly<{ number: number; heard: PromiseWithResolvers<void> }>;
};

/** Whoever asks has half a second: a thousand nodes whose tasks end at once make a few rounds. */
const ROUND_INTERVAL_MS = 200;
/** As long as a node waits whose tasks end: one that answers nobody keeps no question open. */
const MAX_ANSWER_SECONDS = 5;
/** Members in one message, and letters of their names: what fits into a line with much room left. */
const MAX_MEMBERS = 20_000;
const MAX_NAME_LETTERS = 1024 * 1024;

/** Tells the nodes who is in the networks in which they have a part: all at first, then the changes of each commit. */
export class NetworkPush implements Disposable {
  readonly #replica: Replica;
  readonly #clock: Clock;
  readonly #topology: Topology;
  /** The nodes with a session, and the networks that they know. */
  readonly #nodes = new Map<string, Session>();
  readonly #commits: Disposable;
  readonly #asked = new SharedRuns<string>(async (node) => await this.#ask(node));
  readonly #rounds = new SharedRuns<string>(async (network) => await this.#askAll(network));
  #number = 0;

  constructor({ replica, clock }: { replica: Replica; clock: Clock }) {
    this.#replica = replica;
    this.#clock = clock;
    this.#topology = new Topology(replica);
    this.#commits = replica.onCommit(({ changes }) => this.#commit(changes));
  }

  /** A node has begun a session. One that cannot `sync`, of an earlier version, is not waited for. */
  begin(node: string, send: Send, canSync = true): void {
    const ids = this.#topology.networksOf(node);
    this.end(node);
    this.#nodes.set(node, { send, known: new Set(ids), canSync });
    send({ say: 'networks', ids });
    for (const id of ids) this.#sendWhole(node, send, id);
  }

  end(node: string): void {
    this.#nodes.get(node)?.question?.heard.resolve();
    this.#nodes.delete(node);
  }

  /** Resolves when the nodes with a part in a network, as far as they have a session, have heard all until now. */
  async heard(network: string): Promise<void> {
    if (this.#replica.get('network', network) !== undefined) await this.#rounds.run(network);
  }

  /** A node has heard all until this question. */
  synced(node: string, number: number): void {
    const question = this.#nodes.get(node)?.question;
    if (question?.number === number) question.heard.resolve();
  }

  [Symbol.dispose](): void {
    this.#commits[Symbol.dispose]();
    for (const node of this.#nodes.keys()) this.end(node);
  }

  async #askAll(network: string): Promise<void> {
    await sleep(this.#clock, ROUND_INTERVAL_MS);
    await Promise.all([...this.#topology.nodesIn(network)].map(async (node) => await this.#asked.run(node)));
  }

  async #ask(node: string): Promise<void> {
    const session = this.#nodes.get(node);
    if (session?.canSync !== true) return;
    this.#number += 1;
    const heard = Promise.withResolvers<void>();
    session.question = { number: this.#number, heard };
    session.send({ say: 'sync', number: this.#number });
    await settlesWithin(heard.promise, MAX_ANSWER_SECONDS, this.#clock);
  }

  #commit(changes: readonly Change[]): void {
    const before = new Set(changes.filter(({ kind }) => kind === 'network').map(({ id }) => id));
    for (const { kind, record } of changes) {
      if (kind !== 'attachment' || record?.error === undefined) continue;
      const { id, node, error: reason } = record;
      this.#nodes.get(node)?.send({ say: 'unattached', id, kind: 'failed', reason });
    }
    const changed = this.#topology.apply(changes);
    for (const id of before) if (!changed.has(id)) this.#endNetwork(id);
    for (const [id, { members, gone }] of changed) {
      const nodes = this.#topology.nodesIn(id);
      for (const [node, session] of this.#nodes) {
        if (!nodes.has(node)) this.#leave(node, session, id);
        else if (!session.known.has(id) || before.has(id)) {
          session.known.add(id);
          this.#sendWhole(node, session.send, id);
        } else if (members.length + gone.length > 0) {
          sendChanges(session.send, id, members, gone);
        }
      }
    }
  }

  #endNetwork(id: string): void {
    for (const [node, session] of this.#nodes) this.#leave(node, session, id);
  }

  #leave(_node: string, { send, known }: Session, id: string): void {
    if (!known.delete(id)) return;
    send({ say: 'networks', ids: [...known] });
  }

  #sendWhole(node: string, send: Send, id: string): void {
    const network = this.#replica.get('network', id);
    const local = hostOf(this.#replica.get('node', node));
    if (network === undefined || local === undefined) return;
    const whole = { network: networkForNodes(network), local };
    const [first = [], ...others] = inPieces(this.#topology.membersIn(id));
    send({ say: 'network', news: { id, whole, members: first, gone: [] } });
    for (const members of others) send({ say: 'network', news: { id, members, gone: [] } });
  }
}

function sendChanges(send: Send, id: string, members: readonly Member[], gone: string[]): void {
  const [first = [], ...others] = inPieces(members);
  send({ say: 'network', news: { id, members: first, gone } });
  for (const piece of others) send({ say: 'network', news: { id, members: piece, gone: [] } });
}

/** Members for one message each. */
function inPieces(members: readonly Member[]): Member[][] {
  const pieces: Member[][] = [[]];
  let letters = 0;
  for (const member of members) {
    if (letters > MAX_NAME_LETTERS || pieces.at(-1)!.length >= MAX_MEMBERS) {
      pieces.push([]);
      letters = 0;
    }
    pieces.at(-1)!.push(member);
    letters += lettersOf(member);
  }
  return pieces;
}

function lettersOf(member: Member): number {
  if (member.kind === 'node') return 0;
  const aliases = member.kind === 'task' ? [] : member.aliases;
  return aliases.reduce((letters, alias) => letters + alias.length, member.name.length);
}
