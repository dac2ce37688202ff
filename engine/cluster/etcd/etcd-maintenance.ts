import type { Engine } from '../../engine.ts';
import { EtcdError, type Etcd } from './gateway.ts';
import { compact, defragment, disarm, statusOf, type Status } from './maintenance-calls.ts';
import { stepAside } from './members.ts';

type Needs = Pick<Engine, 'background' | 'log'> & Readonly<{ etcd: Etcd }>;
type Settings = Readonly<{
  quotaBytes: number;
  /** Bytes that a file may have beside twice of the used ones. */
  spareBytes: number;
  /** The last commit that is known here. */
  revision: () => number;
  /** Runs the work while no other manager's etcd is out of service on purpose; false: it is another one's turn. */
  inTurn: (work: () => Promise<void>) => Promise<boolean>;
}>;

const CHECK_INTERVAL_MS = 10_000;
/** A file that is at most this much of its quota is not rewritten while another member makes room. */
const LARGE = 0.5;
/** A member that uses more of its quota than this after its file was rewritten stays full. */
const ROOMY = 0.9;
/** A file that was rewritten in vain is so again after ten minutes. */
const LOOKS_UNTIL_ROOM = 60;
export const SPARE_BYTES = 100 * 1024 ** 2;

/**
 * Keeps the file of a member small. etcd itself removes superseded revisions after a minute. A member whose file is more than twice what it uses, and 100 MB, rewrites it: one member at a time, and never the
 * one that leads raft, unless it is the only one. While one is full, which lets nobody write, all do so at once.
 */
export class EtcdMaintenance implements Disposable {
  readonly #needs: Needs;
  readonly #settings: Settings;
  #timer: Disposable;
  #looks = 0;
  /** The look that may rewrite the file of a full member. */
  #nextRoom = 0;
  #isEnding = false;

  constructor(needs: Needs, settings: Settings) {
    this.#needs = needs;
    this.#settings = settings;
    this.#timer = this.#lookLater();
  }

  [Symbol.dispose](): void {
    this.#isEnding = true;
    this.#timer[Symbol.dispose]();
  }

  #lookLater(): Disposable {
    return this.#needs.background.after(CHECK_INTERVAL_MS, 'look after etcd', {}, async () => {
      try {
        await this.#look();
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        this.#needs.log.info({ reason: error.message }, 'etcd maintenance failed, retrying');
      } finally {
        if (!this.#isEnding) this.#timer = this.#lookLater();
      }
    });
  }

  async #look(): Promise<void> {
    const { etcd } = this.#needs;
    this.#looks += 1;
    const status = await statusOf(etcd);
    if (status.isFull) return await this.#makeRoom(status);
    if (status.bytes > 2 * status.usedBytes + this.#settings.spareBytes) await this.#defragment(status);
  }

  async #defragment(status: Status): Promise<void> {
    const { etcd, log } = this.#needs;
    const isDone = await this.#settings.inTurn(async () => {
      await stepAside(etcd);
      await defragment(etcd);
    });
    if (isDone) log.info({ before: status.bytes, used: status.usedBytes }, 'etcd has rewritten its file');
  }

  /** No manager can be elected, and so give turns, while nothing can be stored. */
  async #makeRoom(status: Status): Promise<void> {
    const { etcd, log } = this.#needs;
    const { bytes, usedBytes } = status;
    log.warn({ bytes, used: usedBytes }, 'etcd is full and refuses writes, compacting');
    await compact(etcd, this.#settings.revision());
    if (this.#looks < this.#nextRoom) return;
    // Also where much seems to be used: what a compaction frees counts as used until the next write, which cannot come.
    if (bytes > LARGE * this.#settings.quotaBytes) await defragment(etcd);
    const { self, usedBytes: left } = await statusOf(etcd);
    if (left > ROOMY * this.#settings.quotaBytes) {
      log.error({ used: left }, 'etcd is still full: remove services, tasks or networks');
      this.#nextRoom = this.#looks + LOOKS_UNTIL_ROOM;
      return;
    }
    await disarm(etcd, self); // each member its own alarm
  }
}
