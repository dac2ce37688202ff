import { Type, type Static } from 'typebox';

import { createTable } from '../../../db/migration-sql.ts';
import { RecordTable } from '../../../db/table.ts';
import { EngineError } from '../../../lib/errors.ts';
import { newId } from '../../../lib/ids.ts';
import { isWithin, MAX_TEXT_BYTES } from '../../../lib/notations/field-schemas.ts';
import type { NetworkSettings } from '../../needs.ts';
import { MAX_ATTACHMENTS, usableAliases, WantedAttachment, type Unattached } from './attachment.ts';
import { containersIn, type Member } from './members.ts';

/** As long as dockerd waits for a manager. */
const ANSWER_TIMEOUT_MS = 20_000;
/** All of a node's in one message: a leader ends the session of a node whose line is longer than 2 MB. */
const MAX_MESSAGE_BYTES = 1.5 * 1024 * 1024;

const Row = Type.Object({
  ...WantedAttachment.properties,
  /** Whether the leader has given the address, in the network whose id stands there now. */
  isThere: Type.Boolean(),
});
type Row = Readonly<Static<typeof Row>>;

/** A container that wants to be in a network of the cluster. */
export type Applicant = Readonly<{
  network: string;
  /** The client's name of the network. */
  ref: string;
  name: string;
  aliases: readonly string[];
  ip?: string;
}>;

/**
 * The containers of this node in attachable networks that belong to no service. The leader gives them their addresses: it
 * is told of all of them at the beginning of each session, and whenever they change.
 */
export class Attachments {
  readonly #settings: Pick<NetworkSettings, 'clock' | 'log'>;
  readonly #rows;
  readonly #waiting = new Map<string, PromiseWithResolvers<Row>>();
  /** Undefined outside of a cluster. */
  #tell: ((wanted: WantedAttachment[]) => void) | undefined;

  constructor({ db, clock, log }: Pick<NetworkSettings, 'db' | 'clock' | 'log'>) {
    this.#settings = { clock, log };
    db.migrate('overlay_attachments', [createTable('overlay_attachments')]);
    this.#rows = new RecordTable(db, { name: 'overlay_attachments', schema: Row, id: ({ id }) => id });
  }

  /** The node is a member of a cluster from now on, or with undefined of none. */
  use(tell: ((wanted: WantedAttachment[]) => void) | undefined): void {
    this.#tell = tell;
    if (tell !== undefined) return;
    for (const { id } of this.#rows.all()) this.refuse({ id, kind: 'failed', reason: 'the node has left its cluster' });
  }

  get isInCluster(): boolean {
    return this.#tell !== undefined;
  }

  /** A session begins: the leader gets to know all, unless it knows of none and there is none. */
  begin(): void {
    if (!this.#rows.values().next().done) this.#tellAll();
  }

  /**
   * Asks the leader for an address. Returns the id of the network, and how to give all of it back. Throws the leader's
   * refusal, and `failed` where no leader answers.
   */
  async take({ network, ref, name, aliases, ip }: Applicant): Promise<{ network: string } & Disposable> {
    if (!isWithin(MAX_TEXT_BYTES, [network, name])) {
      throw new EngineError(
        'invalid',
        'the names of a network of the cluster and of a container in it are 4 KB at most',
      );
    }
    if (this.#rows.all().length >= MAX_ATTACHMENTS) {
      throw new EngineError('failed', `a node has ${MAX_ATTACHMENTS} containers in networks of the cluster at most`);
    }
    const id = newId();
    const wanted = { id, network, name, aliases: usableAliases(aliases), ...(ip !== undefined && { ip }) };
    if (!isWithin(MAX_MESSAGE_BYTES, [...this.#rows.all(), wanted])) {
      throw new EngineError(
        'failed',
        'the names of the containers in networks of the cluster are 1.5 MB on a node at most',
      );
    }
    const waiting = Promise.withResolvers<Row>();
    const late = new EngineError('failed', 'no manager has answered in time');
    using _timer = this.#settings.clock.after(ANSWER_TIMEOUT_MS, () => waiting.reject(late));
    this.#waiting.set(id, waiting);
    this.#rows.put({ ...wanted, isThere: false });
    this.#tellAll();
    try {
      const row = await waiting.promise;
      return { network: row.network, [Symbol.dispose]: () => this.#drop(id) };
    } catch (error) {
      this.#drop(id);
      if (!(error instanceof EngineError)) throw error;
      throw new EngineError(error.kind, `Could not attach to network ${ref}: ${error.message}`, { cause: error });
    } finally {
      this.#waiting.delete(id);
    }
  }

  /** A container has another name from now on, on all nodes. */
  rename(before: string, name: string): void {
    const renamed = this.#rows.all().filter((row) => row.name === before);
    for (const row of renamed) this.#rows.put({ ...row, name });
    if (renamed.length > 0) this.#tellAll();
  }

  /** The address of a container in a network. */
  of(network: string, name: string): { id: string; ip: string } | undefined {
    const row = this.#rows.values().find((one) => one.isThere && one.network === network && one.name === name);
    return row?.ip === undefined ? undefined : { id: row.id, ip: row.ip };
  }

  /** An endpoint with this address has ended. One that is none of these is not an error. */
  release(network: string, ip: string): void {
    const row = this.#rows.values().find((one) => one.isThere && one.network === network && one.ip === ip);
    if (row !== undefined) this.#drop(row.id);
  }

  /** At the daemon's start: gives up those whose containers have ended. */
  keepOnly(isInUse: (network: string, ip: string) => boolean): void {
    for (const { id, isThere, network, ip = '' } of this.#rows.all()) {
      if (!isThere || !isInUse(network, ip)) this.#rows.delete(id);
    }
  }

  /** Takes the leader's news of a network; `local`: this node's own address. */
  hear(network: string, members: readonly Member[], local: string): void {
    let isStale = false;
    for (const { id, ip, host } of containersIn(members)) {
      if (host !== local) continue;
      const row = this.#rows.get(id);
      isStale ||= row === undefined;
      if (row === undefined || (row.isThere && row.ip === ip)) continue;
      if (row.isThere) this.#settings.log.warn({ network, ip }, 'a running container has lost its address');
      const known = { ...row, network, ip, isThere: true };
      this.#rows.put(known);
      this.#waiting.get(id)?.resolve(known);
    }
    if (isStale) this.#tellAll();
  }

  /** The leader's refusal; of a container that runs, after a loss of records. */
  refuse({ id, kind, reason }: Unattached): void {
    const row = this.#rows.get(id);
    if (row === undefined) return;
    const error = new EngineError(kind, reason);
    const waiting = this.#waiting.get(id);
    if (waiting !== undefined) return waiting.reject(error);
    this.#settings.log.warn({ err: error, container: row.name }, 'a running container has lost its network');
    this.#drop(id);
  }

  #drop(id: string): void {
    if (!this.#rows.has(id)) return;
    this.#rows.delete(id);
    this.#tellAll();
  }

  #tellAll(): void {
    this.#tell?.(this.#rows.all().map(({ isThere: _known, ...wanted }) => wanted));
  }
}
