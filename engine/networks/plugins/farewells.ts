import { Type, type Static } from 'typebox';

import type { Database } from '../../db/database.ts';
import { createTable } from '../../db/migration-sql.ts';
import { RecordTable } from '../../db/table.ts';
import type { Background } from '../../lib/background.ts';
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

const Farewell = Type.Object({
  /** Id of the endpoint, or of the network. */
  id: Type.String(),
  networkId: Type.String(),
  /** In this order. */
  calls: Type.Immutable(Type.Array(PluginCall)),
});

type Log = { warn(details: object, message: string): void };
type Parts = Readonly<{ background: Background; db: Database; log: Log; plugins: Plugins }>;

/** The wait for a plugin that is gone is short: it is told later. */
const SHORT = { timeoutMs: 10_000, patienceMs: 0 };

/**
 * Calls that undo earlier ones. Each is noted before the earlier call, and removed with the commit of its result, so
 * that a daemon that dies in between leaves nothing with the plugin; and noted again with the end of that, whether the
 * plugin is there or not. A plugin that refuses was told; one that does not answer is told again.
 */
export class Farewells {
  readonly #parts: Parts;
  readonly #table;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #inMaking = new Set<string>();

  constructor(parts: Parts) {
    this.#parts = parts;
    parts.db.migrate('farewells', [createTable('farewells')]);
    this.#table = new RecordTable(parts.db, {
      name: 'farewells',
      schema: Farewell,
      id: ({ id }) => id,
      groups: { network: ({ networkId }) => networkId },
    });
  }

  /** Instead of what was noted for this id. */
  owe(id: string, networkId: string, calls: readonly PluginCall[]): void {
    if (calls.length > 0) this.#table.put({ id, networkId, calls: [...calls] });
    else this.forget(id);
  }

  /** Before what was noted for this id: what is made last is taken back first. */
  oweFirst(id: string, networkId: string, call: PluginCall): void {
    this.owe(id, networkId, [call, ...(this.#table.get(id)?.calls ?? [])]);
  }

  /** The plugin has refused to make what was noted last. */
  dropFirst(id: string, networkId: string): void {
    this.owe(id, networkId, this.#table.get(id)?.calls.slice(1) ?? []);
  }

  has(id: string): boolean {
    return this.#table.has(id);
  }

  forget(id: string): void {
    if (this.#table.has(id)) this.#table.delete(id);
  }

  /** At the daemon's start; `isKept` tells what was made before the note of it could be forgotten. */
  restore(isKept: (id: string) => boolean): void {
    for (const { id } of this.#table.all()) {
      if (isKept(id)) this.forget(id);
      else this.settleLater(id);
    }
  }

  /** Calls the plugins once; successful calls are removed. Throws if one does not answer. */
  async settle(id: string): Promise<void> {
    const running = this.#underWay.get(id);
    if (running !== undefined) return await running;
    const settling = this.#settle(id).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, settling);
    await settling;
  }

  /** Everything of a network's endpoints that are gone. Throws where a plugin does not answer. */
  async settleEndpoints(networkId: string): Promise<void> {
    const ids = this.#table.in('network', networkId).map(({ id }) => id);
    for (const id of ids) if (id !== networkId && !this.#inMaking.has(id)) await this.settle(id);
  }

  /** Calls for this id are held back: it is being created. */
  making(id: string): Disposable {
    this.#inMaking.add(id);
    return { [Symbol.dispose]: () => void this.#inMaking.delete(id) };
  }

  /** Until they have answered, also over restarts of the daemon. */
  settleLater(id: string): void {
    const work = async (): Promise<void> => await this.settle(id);
    this.#parts.background.untilDone('tell a plugin what has ended', { id }, work);
  }

  /** At once, and later if one does not answer. */
  async settleSoon(id: string): Promise<void> {
    try {
      await this.settle(id);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#parts.log.warn({ err: error, id }, 'repeat calls to plugins that are away');
      this.settleLater(id);
    }
  }

  async #settle(id: string): Promise<void> {
    for (;;) {
      const owed = this.#table.get(id);
      if (owed === undefined) return;
      const { networkId, calls } = owed;
      if (id === networkId) await this.settleEndpoints(networkId);
      const [first, ...rest] = calls;
      if (first !== undefined) await this.#say(first);
      this.owe(id, networkId, rest);
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
      log.warn({ err: error, plugin: name, method }, 'a plugin refuses to take back what has ended');
    }
  }
}
