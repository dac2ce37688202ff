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
const LONGEST_REASON = 1000;

/** Plugins that the engine itself runs; they come before those of other programs. */
export type OwnPlugins = Readonly<{
  /** Where it listens, and under which name; undefined for none of these. Throws `notFound` for one that is disabled. */
  find(ref: string): OwnPlugin | undefined;
  /** Those that are enabled and say that they are of this type, such as `volumedriver`. */
  names(type: string): string[];
  /** Whether one of these is installed, also disabled. */
  has(ref: string): boolean;
}>;

export type OwnPlugin = Readonly<{
  name: string;
  address: PluginAddress;
  /** Where the machine has what the plugin calls by this path. Throws `failed` if that is outside of its files. */
  hostPath: (path: string) => string;
}>;

/** A plugin that has answered the handshake. */
export type Plugin = Readonly<{
  name: string;
  implements: readonly string[];
  /** Where the machine has what the plugin calls by this path. */
  hostPath: (path: string) => string;
  /**
   * Calls a method such as `VolumeDriver.Mount`, and reads its answer by this schema. Throws `failed`, with the words of
   * the plugin where it has any. It is tried again for 30 seconds while nobody listens, and given up after two minutes.
   */
  call<T extends TSchema>(method: string, body: unknown, answer: T, limits?: CallLimits): Promise<Static<T>>;
}>;

export type CallLimits = Readonly<{ timeoutMs?: number; patienceMs?: number }>;

/**
 * The plugins that can be asked: those that the engine runs, and those of other programs, which are found by name in the
 * standard folders when they are first needed.
 *
 * A plugin is asked once what it implements. One that has moved to another address is found again, and asked again.
 */
export class Plugins {
  readonly #clock: Clock;
  readonly #folders: readonly string[];
  readonly #own: OwnPlugins | undefined;
  readonly #active = new Map<string, { address: PluginAddress; plugin: Promise<Plugin> }>();

  constructor(clock: Clock, folders: readonly string[], own?: OwnPlugins) {
    this.#clock = clock;
    this.#folders = folders;
    this.#own = own;
  }

  /** Whether there is one of this name; nobody is asked yet. */
  has(name: string): boolean {
    return this.#own?.has(name) === true || findPlugin(this.#folders, name) !== undefined;
  }

  /** The names of the engine's own of one type, such as `volumedriver`. */
  ownNames(type: string): string[] {
    return this.#own?.names(type) ?? [];
  }

  /** The whole name of one that may be called by a shorter one. Throws `notFound` for one that is disabled. */
  nameOf(ref: string): string {
    return this.#own?.find(ref)?.name ?? ref;
  }

  /** The names in the folders. */
  names(): string[] {
    return pluginNames(this.#folders);
  }

  /** Throws `notFound` without a plugin of this name, or if it is of another kind; `failed` if it does not answer. */
  async get(ref: string, capability: Capability, limits: CallLimits = {}): Promise<Plugin> {
    const found = this.#find(ref);
    if (found === undefined) throw new EngineError('notFound', `plugin "${ref}" not found`);
    const { name, address } = found;
    let known = this.#active.get(name);
    if (known === undefined || JSON.stringify(known.address) !== JSON.stringify(address)) {
      known = { address, plugin: this.activate(found, limits) };
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

  /** The handshake, whatever was answered to an earlier one. Throws `failed`. */
  async activate({ name, address, hostPath }: OwnPlugin, limits: CallLimits = {}): Promise<Plugin> {
    const call: Plugin['call'] = async (method, body, answer, own = {}) =>
      await this.#call(name, address, { method, body, answer, limits: own });
    const { Implements } = await call('Plugin.Activate', {}, Activation, limits);
    return { name, implements: Implements ?? [], hostPath, call };
  }

  #find(ref: string): OwnPlugin | undefined {
    const own = this.#own?.find(ref);
    if (own !== undefined) return own;
    const address = findPlugin(this.#folders, ref);
    return address === undefined ? undefined : { name: ref, address, hostPath: (path) => path };
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
    if (status !== 200) throw new EngineError('failed', `${method}: ${beginningOf(Err === '' ? text.trim() : Err)}`);
    if (Err !== '') throw new EngineError('failed', beginningOf(Err));
    if (Schema.Check(answer, read)) return read;
    throw new EngineError(
      'failed',
      `${method}: plugin "${name}" answered what its protocol does not know: ${text.slice(0, 200)}`,
    );
  }
}

/** An answer may be a page, or more than anybody wants to read. */
function beginningOf(text: string): string {
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
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
