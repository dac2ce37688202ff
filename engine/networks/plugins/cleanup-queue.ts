import { Type, type Static } from 'typebox';

import type { Database } from '../../db/database.ts';
import { createTable } from '../../db/migration-sql.ts';
import { RecordTable } from '../../db/table.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { EngineError } from '../../lib/errors.ts';
import { PluginError, type Plugins } from '../../plugins/plugins.ts';
import { Nothing, pluginOf } from './network-protocol.ts';

const PluginCall = Type.Object({
  plugin: Type.String(),
  kind: Type.Union([Type.Literal('NetworkDriver'), Type.Literal('IpamDriver')]),
  method: Type.String(),
  body: Type.Record(Type.String(), Type.String()),
});
/** A pending call to a plugin, such as `NetworkDriver.DeleteEndpoint`. */
export type PluginCall = Readonly<Static<typeof PluginCall>>;

const CleanupRecord = Type.Object({
  /** Id of the endpoint, or of the network. */
  id: Type.String(),
  networkId: Type.String(),
  /** In this order. */
  calls: Type.Immutable(Type.Array(PluginCall)),
});

type Log = { warn(details: object, message: string): void };
type Parts = Readonly<{ background: Background; db: Database; log: Log; plugins: Plugins }>;

/** Waits briefly for a missing plugin: the call is repeated later. */
const SHORT = { timeoutMs: 10_000, patienceMs: 0 };

/**
 * Pending calls that undo earlier ones. The undoing call is stored before the call that it undoes, and removed with the
 * commit of the result, so that a daemon that dies in between leaves nothing with the plugin. The end of an endpoint or
 * network stores it again, even while the plugin is missing. A refusal counts as done; without an answer it is repeated.
 */
export class CleanupQueue {
  readonly #parts: Parts;
  readonly #table;
  readonly #running = new Map<string, Promise<void>>();
  readonly #held = new Set<string>();

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.db.migrate('farewells', [createTable('farewells')]);
    this.#table = new RecordTable(parts.db, {
      name: 'farewells',
      schema: CleanupRecord,
      id: ({ id }) => id,
      groups: { network: ({ networkId }) => networkId },
    });
  }

  /** Replaces the calls stored for this id. */
  set(id: string, networkId: string, calls: readonly PluginCall[]): void {
    if (calls.length > 0) this.#table.put({ id, networkId, calls: [...calls] });
    else this.forget(id);
  }

  /** Puts a call before those stored for this id: the latest resource is released first. */
  prepend(id: string, networkId: string, call: PluginCall): void {
    this.set(id, networkId, [call, ...(this.#table.get(id)?.calls ?? [])]);
  }

  /** Removes the latest call, because the plugin refused to create its resource. */
  dropFirst(id: string, networkId: string): void {
    this.set(id, networkId, this.#table.get(id)?.calls.slice(1) ?? []);
  }

  has(id: string): boolean {
    return this.#table.has(id);
  }

  forget(id: string): void {
    if (this.#table.has(id)) this.#table.delete(id);
  }

  /** Resumes at the daemon's start. `isKept`: the resource was created, and only its pending call was left. */
  restore(isKept: (id: string) => boolean): void {
    for (const { id } of this.#table.all()) {
      if (isKept(id)) this.forget(id);
      else this.flushLater(id);
    }
  }

  /** Calls the plugins once; successful calls are removed. Throws if one does not answer. */
  async flush(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running !== undefined) return await running;
    const flushing = this.#flush(id).finally(() => this.#running.delete(id));
    this.#running.set(id, flushing);
    await flushing;
  }

  /** Flushes the calls of a network's removed endpoints. Throws if a plugin does not answer. */
  async flushEndpoints(networkId: string): Promise<void> {
    const ids = this.#table.in('network', networkId).map(({ id }) => id);
    for (const id of ids) if (id !== networkId && !this.#held.has(id)) await this.flush(id);
  }

  /** Holds back calls for this id while it is being created. */
  hold(id: string): Disposable {
    this.#held.add(id);
    return { [Symbol.dispose]: () => void this.#held.delete(id) };
  }

  /** Repeats the calls until the plugins answer, also over restarts of the daemon. */
  flushLater(id: string): void {
    const work = async (): Promise<void> => await this.flush(id);
    this.#parts.background.untilDone('undo earlier calls to a plugin', { id }, work);
  }

  /** Calls the plugins now, and again later if one does not answer. */
  async flushSoon(id: string): Promise<void> {
    try {
      await this.flush(id);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#parts.log.warn({ err: error, id }, 'a plugin does not answer, repeating its calls later');
      this.flushLater(id);
    }
  }

  async #flush(id: string): Promise<void> {
    for (;;) {
      const record = this.#table.get(id);
      if (record === undefined) return;
      const { networkId, calls } = record;
      if (id === networkId) await this.flushEndpoints(networkId);
      const [first, ...rest] = calls;
      if (first !== undefined) await this.#say(first);
      this.set(id, networkId, rest);
    }
  }

  async #say({ plugin: name, kind, method, body }: PluginCall): Promise<void> {
    const { log, plugins } = this.#parts;
    try {
      const plugin = await pluginOf(plugins, name, kind, SHORT);
      await plugin.call(`${kind}.${method}`, body, Nothing, SHORT);
    } catch (error) {
      if (!(error instanceof PluginError) || error.how === 'silent') throw error;
      if (error.status === 404) return; // not every plugin has every method
      log.warn({ err: error, plugin: name, method }, 'a plugin refused a call that undoes an earlier one');
    }
  }
}
