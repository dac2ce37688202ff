import { join } from 'node:path';

import { Etcd } from '@gantry/engine/cluster/etcd/gateway.ts';
import { keyOf } from '@gantry/engine/cluster/state/keys.ts';
import type { Kind, Records, TaskRecord } from '@gantry/engine/cluster/state/records.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';

import type { ClusterHost } from './hosts.ts';

/** The records of a manager's etcd, read and written beside its leader: states that no request of the API leads to. */
export class StoredRecords implements AsyncDisposable {
  readonly #etcd: Etcd;

  private constructor(etcd: Etcd) {
    this.#etcd = etcd;
  }

  static async of(host: ClusterHost): Promise<StoredRecords> {
    return new StoredRecords(await Etcd.open(join(host.engine.directory, 'exec/etcd/client:0'), systemClock));
  }

  async put<K extends Kind>(kind: K, id: string, record: Records[K]): Promise<void> {
    await this.#etcd.store({}, [{ put: keyOf(kind, id), value: JSON.stringify(record) }], 5000);
  }

  async delete(kind: Kind, id: string): Promise<void> {
    await this.#etcd.store({}, [{ delete: keyOf(kind, id) }], 5000);
  }

  async task(id: string): Promise<TaskRecord | undefined> {
    const { kv } = await this.#etcd.get(keyOf('task', id));
    return kv === undefined ? undefined : (JSON.parse(kv.value) as TaskRecord);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#etcd[Symbol.asyncDispose]();
  }
}
