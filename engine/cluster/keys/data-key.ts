import { Type } from 'typebox';

import type { Engine } from '../../engine.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { newEncryptionKey } from '../../lib/encryption.ts';
import { EngineError } from '../../lib/errors.ts';
import type { MemberFolder } from '../membership/identity.ts';
import { digestOfKey } from '../secrets/seal.ts';
import type { Replica } from '../state/replica.ts';
import { NotReached, type WireClient } from '../wire/client.ts';

type Needs = Pick<Engine, 'clock'> &
  Readonly<{
    folder: MemberFolder;
    client: WireClient;
    replica: Replica;
    /** Its own id. */
    node: string;
  }>;

const DataKeyAnswer = Type.Object({ key: Type.String() });

const TIMEOUT_MS = 10_000;
const ANSWER_TIMEOUT_MS = 2000;
const RETRY_DELAY_MS = 100;

/**
 * The key by which secrets and configs are encrypted in etcd: a file of each manager, and no record. The record of the
 * cluster has its digest. The first leader makes it; every other manager asks those that have it.
 */
export class DataKey {
  readonly #needs: Needs;
  #key: Buffer | undefined;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** The key, if this manager has it. */
  get known(): Buffer | undefined {
    return this.of(this.#digest);
  }

  /** The key with this digest, if this manager has it. */
  of(digest: string | undefined): Buffer | undefined {
    this.#key ??= this.#needs.folder.readDataKey();
    return this.#key !== undefined && digest === digestOfKey(this.#key) ? this.#key : undefined;
  }

  /** The key, from this manager or another one. Throws `unavailable` if no manager that answers has it. */
  async get(): Promise<Buffer> {
    const { clock } = this.#needs;
    return await retry({ clock, timeoutMs: TIMEOUT_MS, delayMs: RETRY_DELAY_MS, isTransient }, async () => {
      return this.known ?? (await this.#fetch());
    });
  }

  /** Returns the digest of the key of a cluster that has none yet; its own from an earlier attempt, else a new one. */
  make(): string {
    this.#key ??= this.#needs.folder.readDataKey() ?? newEncryptionKey();
    this.#needs.folder.writeDataKey(this.#key);
    return digestOfKey(this.#key);
  }

  get #digest(): string | undefined {
    return this.#needs.replica.get('cluster', '')?.dataKey;
  }

  async #fetch(): Promise<Buffer> {
    const { client, folder, node, replica } = this.#needs;
    const digest = this.#digest;
    for (const { id, manager } of replica.all('node')) {
      if (digest === undefined || manager === undefined || id === node) continue;
      try {
        const { key: text } = await client.ask(manager.address, '/v1/data-key', {}, DataKeyAnswer, ANSWER_TIMEOUT_MS);
        const key = Buffer.from(text, 'base64');
        if (digestOfKey(key) !== digest) continue;
        folder.writeDataKey(key);
        return (this.#key = key);
      } catch (error) {
        if (!(error instanceof NotReached || error instanceof EngineError)) throw error; // another manager may have it
      }
    }
    throw new EngineError('unavailable', 'no manager that answers has the key of the secrets and configs');
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof EngineError && error.kind === 'unavailable';
}
