import { Type, type Static, type TSchema } from 'typebox';
import Schema from 'typebox/schema';

import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { callPlugin } from './call.ts';
import { findPlugin, pluginNames, type PluginAddress } from './find.ts';

/** What a plugin can be, in the words of its protocol. */
export type Capability = 'VolumeDriver' | 'NetworkDriver' | 'IpamDriver' | 'authz';

const Activation = Type.Object({ Implements: Type.Union([Type.Array(Type.String()), Type.Null()]) });
const Failure = Type.Object({ Err: Type.Optional(Type.String()) });

/** For a plugin that starts beside us, as in docker. */
const PATIENCE_MS = 30_000;
const CALL_MS = 120_000;

/** A plugin that has answered the handshake. */
export type Plugin = Readonly<{
  name: string;
  implements: readonly string[];
  /**
   * Calls a method such as `VolumeDriver.Mount`, and reads its answer by this schema. Throws `failed`, with the words of
   * the plugin where it has any. It is tried again for 30 seconds while nobody listens, and given up after two minutes.
   */
  call<T extends TSchema>(method: string, body: unknown, answer: T, limits?: CallLimits): Promise<Static<T>>;
}>;

export type CallLimits = Readonly<{ timeoutMs?: number; patienceMs?: number }>;

/**
 * The plugins of other programs, found by name in the standard folders when they are first needed.
 *
 * A plugin is asked once what it implements. One that has moved to another address is found again, and asked again.
 */
export class Plugins {
  readonly #clock: Clock;
  readonly #folders: readonly string[];
  readonly #active = new Map<string, { address: PluginAddress; plugin: Promise<Plugin> }>();

  constructor(clock: Clock, folders: readonly string[]) {
    this.#clock = clock;
    this.#folders = folders;
  }

  /** Whether there is a file of this name; nobody is asked yet. */
  has(name: string): boolean {
    return findPlugin(this.#folders, name) !== undefined;
  }

  /** The names in the folders. */
  names(): string[] {
    return pluginNames(this.#folders);
  }

  /** Throws `notFound` without a plugin of this name, or if it is of another kind; `failed` if it does not answer. */
  async get(name: string, capability: Capability, limits: CallLimits = {}): Promise<Plugin> {
    const address = findPlugin(this.#folders, name);
    if (address === undefined) throw new EngineError('notFound', `plugin "${name}" not found`);
    let known = this.#active.get(name);
    if (known === undefined || JSON.stringify(known.address) !== JSON.stringify(address)) {
      known = { address, plugin: this.#activate(name, address, limits) };
      this.#active.set(name, known);
    }
    try {
      const plugin = await known.plugin;
      if (plugin.implements.includes(capability)) return plugin;
    } catch (error) {
      if (this.#active.get(name) === known) this.#active.delete(name); // it may answer the next time
      throw error;
    }
    throw new EngineError('notFound', `plugin "${name}" does not implement ${capability}`);
  }

  async #activate(name: string, address: PluginAddress, limits: CallLimits): Promise<Plugin> {
    const call: Plugin['call'] = async (method, body, answer, own = {}) =>
      await this.#call(name, address, { method, body, answer, limits: own });
    const { Implements } = await call('Plugin.Activate', {}, Activation, limits);
    return { name, implements: Implements ?? [], call };
  }

  async #call<T extends TSchema>(
    name: string,
    address: PluginAddress,
    { method, body, answer, limits }: { method: string; body: unknown; answer: T; limits: CallLimits },
  ): Promise<Static<T>> {
    const { timeoutMs = CALL_MS, patienceMs = PATIENCE_MS } = limits;
    let status: number;
    let text: string;
    try {
      ({ status, text } = await callPlugin(address, method, body, { clock: this.#clock, timeoutMs, patienceMs }));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new EngineError('failed', `plugin "${name}" does not answer: ${reason}`, { cause: error });
    }
    const read = readJson(text);
    const { Err = '' } = Schema.Check(Failure, read) ? read : {};
    if (status !== 200) throw new EngineError('failed', `${method}: ${Err === '' ? text.trim() : Err}`);
    if (Err !== '') throw new EngineError('failed', Err);
    if (Schema.Check(answer, read)) return read;
    throw new EngineError(
      'failed',
      `${method}: plugin "${name}" answered what its protocol does not know: ${text.slice(0, 200)}`,
    );
  }
}

function readJson(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
