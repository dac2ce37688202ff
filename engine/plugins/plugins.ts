import { Type, type Static, type TSchema } from 'typebox';
import Schema from 'typebox/schema';

import { sleep, type Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { fieldsOf, readJson } from './answers.ts';
import { callPlugin } from './call.ts';
import { findPlugin, isPluginName, pluginNames, type PluginAddress } from './find.ts';

/** The kinds of plugins, in the words of the protocol. */
export type Capability = 'VolumeDriver' | 'NetworkDriver' | 'IpamDriver' | 'authz';

const Activation = Type.Object({ Implements: Type.Optional(Type.Array(Type.String())) });
/** Volumes and networks have `Err`, address plugins `Error`. */
const Failure = Type.Object({ Err: Type.Optional(Type.String()), Error: Type.Optional(Type.String()) });

/** Other programs name files by the machine's paths. */
const MACHINES_OWN: PluginFiles = { hostPath: (path) => path, show: (path) => path, hide: () => undefined };

/** For a plugin whose address is known and that starts beside us, as in docker. */
const TIMEOUT_MS = 30_000;
/** For a plugin without an address: dockerd looks again after 1, 2, 4 and 8 seconds. */
const APPEARANCE_TIMEOUT_MS = 15_000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 1000;
const CALL_MS = 120_000;
const MAX_REASON = 1000;

/** Plugins that the engine itself runs; they come before those of other programs. */
export type OwnPlugins = Readonly<{
  /** The plugin's address and full name; undefined for an unknown plugin. Throws `notFound` for a disabled one. */
  find(ref: string): OwnPlugin | undefined;
  /** The enabled plugins of this type, such as `volumedriver`. */
  names(type: string): string[];
  /** Whether one of this name is installed, even a disabled one. */
  has(ref: string): boolean;
}>;

export type OwnPlugin = Readonly<
  {
    name: string;
    address: PluginAddress;
  } & PluginFiles
>;

/** How the machine gets at the files that a plugin names. */
type PluginFiles = {
  /** The machine's path for a path of the plugin, to be shown. Throws `failed` if it is outside of the plugin's files. */
  hostPath: (path: string) => string;
  /** A path to mount, which leads there until `hide`, whatever the plugin does to its files. Throws `failed`. */
  show: (path: string, key: string) => string;
  /** One that is not shown is not an error. */
  hide: (key: string) => void;
};

/** A failed call: no answer, a refusal, or an answer against the protocol. */
export class PluginError extends EngineError {
  readonly how: 'silent' | 'refused' | 'garbled';
  /** Status of the answer; undefined without one. */
  readonly status: number | undefined;

  constructor(how: PluginError['how'], message: string, { status, cause }: { status?: number; cause?: unknown }) {
    super('failed', message, { cause });
    this.how = how;
    this.status = status;
  }
}

/** A plugin that has answered the handshake. */
export type Plugin = Readonly<
  {
    name: string;
    implements: readonly string[];
    /**
     * Calls a method such as `VolumeDriver.Mount`, and reads its answer by this schema. Throws `PluginError`, with the words
     * of the plugin where it has any. Retries for 30 seconds while nobody listens, and gives up after two minutes.
     */
    call<T extends TSchema>(method: string, body: unknown, answer: T, limits?: CallLimits): Promise<Static<T>>;
  } & PluginFiles
>;

/** `signal`: ends the call, as its client has left. */
export type CallLimits = Readonly<{ timeoutMs?: number; patienceMs?: number; signal?: AbortSignal }>;

/**
 * All plugins: those that the engine runs, and those of other programs, which are found by name in the standard folders
 * when they are first needed.
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

  /** Whether a plugin has this name; the plugin is not asked yet. */
  has(name: string): boolean {
    return this.#own?.has(name) === true || findPlugin(this.#folders, name) !== undefined;
  }

  /** Waits for a plugin that starts beside us. Returns false if none of this name has appeared. */
  async appears(name: string, timeoutMs = APPEARANCE_TIMEOUT_MS, signal?: AbortSignal): Promise<boolean> {
    const end = this.#clock.now().add({ milliseconds: timeoutMs });
    for (let delayMs = FIRST_DELAY_MS; !this.#isThere(name); delayMs = Math.min(delayMs * 2, MAX_DELAY_MS)) {
      if (!isPluginName(name) || Temporal.Instant.compare(this.#clock.now(), end) >= 0) return false;
      await sleep(this.#clock, delayMs, signal);
      signal?.throwIfAborted();
    }
    return true;
  }

  /** The names of the engine's own of one type, such as `volumedriver`. */
  ownNames(type: string): string[] {
    return this.#own?.names(type) ?? [];
  }

  /** The full name of a plugin that may be given by a shorter one. Throws `notFound` for a disabled plugin. */
  nameOf(ref: string): string {
    return this.#own?.find(ref)?.name ?? ref;
  }

  /** The names in the folders. */
  names(): string[] {
    return pluginNames(this.#folders);
  }

  /**
   * Throws `notFound` if no plugin of this name appears, or if it is of another kind; `failed` if it does not answer.
   */
  async get(ref: string, capability: Capability, limits: CallLimits = {}): Promise<Plugin> {
    const patienceMs = Math.min(limits.patienceMs ?? APPEARANCE_TIMEOUT_MS, APPEARANCE_TIMEOUT_MS);
    await this.appears(ref, patienceMs, limits.signal);
    const found = this.#find(ref);
    if (found === undefined) throw new EngineError('notFound', `plugin "${ref}" not found`);
    const { name, address } = found;
    let known = this.#active.get(name);
    if (known === undefined || JSON.stringify(known.address) !== JSON.stringify(address)) {
      const { signal: _signal, ...shared } = limits; // others may wait for the same handshake
      known = { address, plugin: this.activate(found, shared) };
      this.#active.set(name, known);
    }
    try {
      const plugin = await known.plugin;
      if (plugin.implements.includes(capability)) return plugin;
    } catch (error) {
      if (this.#active.get(name) === known) this.#active.delete(name); // the next attempt may succeed
      throw error;
    }
    throw new EngineError('notFound', `plugin "${name}" does not implement ${capability}`);
  }

  /** The handshake, regardless of earlier answers. Throws `failed`. */
  async activate({ name, address, hostPath, show, hide }: OwnPlugin, limits: CallLimits = {}): Promise<Plugin> {
    const call: Plugin['call'] = async (method, body, answer, own = {}) =>
      await this.#call(name, address, { method, body, answer, limits: own });
    const { Implements = [] } = await call('Plugin.Activate', {}, Activation, limits);
    return { name, implements: Implements, hostPath, show, hide, call };
  }

  /** A file that is being written cannot be understood yet. */
  #isThere(name: string): boolean {
    try {
      return this.has(name);
    } catch (error) {
      if (error instanceof EngineError) return false;
      throw error;
    }
  }

  #find(ref: string): OwnPlugin | undefined {
    const own = this.#own?.find(ref);
    if (own !== undefined) return own;
    const address = findPlugin(this.#folders, ref);
    return address === undefined ? undefined : { name: ref, address, ...MACHINES_OWN };
  }

  async #call<T extends TSchema>(
    name: string,
    address: PluginAddress,
    { method, body, answer, limits }: { method: string; body: unknown; answer: T; limits: CallLimits },
  ): Promise<Static<T>> {
    const { timeoutMs = CALL_MS, patienceMs = TIMEOUT_MS, signal } = limits;
    let status: number;
    let text: string;
    try {
      ({ status, text } = await callPlugin(address, method, body, {
        clock: this.#clock,
        timeoutMs,
        patienceMs,
        signal,
      }));
    } catch (error) {
      const reason = messageOf(error);
      throw new PluginError('silent', `plugin "${name}" does not answer: ${reason}`, { cause: error });
    }
    const json = readJson(text);
    const failure = fieldsOf(json, Failure);
    const isReadable = Schema.Check(Failure, failure);
    const { Err = '', Error: other = '' } = isReadable ? failure : {};
    const said = Err === '' ? other : Err;
    if (status !== 200) {
      const reason = said === '' ? text.trim() || `status ${status}` : said;
      throw new PluginError('refused', `${method}: ${beginningOf(reason)}`, { status });
    }
    if (said !== '') throw new PluginError('refused', beginningOf(said), { status });
    const read = fieldsOf(json, answer);
    if (isReadable && Schema.Check(answer, read)) return read;
    const garbled = `${method}: plugin "${name}" answered against its protocol: ${text.slice(0, 200)}`;
    throw new PluginError('garbled', garbled, { status });
  }
}

/** An answer may be very long. */
export function beginningOf(text: string): string {
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text;
}
