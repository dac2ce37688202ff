import { Type, type Static } from 'typebox';

import { EngineError } from '../lib/errors.ts';
import { PluginError, type CallLimits, type Plugin, type Plugins } from '../plugins/plugins.ts';
import type { VolumeDriver, VolumeFacts, VolumeOptions } from './driver.ts';
import type { Volume } from './store.ts';

const Nothing = Type.Object({});
const Place = Type.Object({ Mountpoint: Type.Optional(Type.String()) });
const Found = Type.Object({
  Name: Type.Optional(Type.String()),
  Mountpoint: Type.Optional(Type.String()),
  Status: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
const Got = Type.Object({ Volume: Type.Optional(Found) });
const Capabilities = Type.Object({
  Capabilities: Type.Optional(Type.Object({ Scope: Type.Optional(Type.String()) })),
});

/** A list of volumes does not wait longer for a plugin that is gone, or does not answer. */
const SHORT = { patienceMs: 2000, timeoutMs: 2000 };

/** Volumes that a plugin keeps: its protocol is that of docker's volume plugins. */
export class PluginVolumes implements VolumeDriver {
  readonly name: string;
  readonly #plugins: Plugins;
  #scope: 'local' | 'global' | undefined;

  constructor(plugins: Plugins, name: string) {
    this.#plugins = plugins;
    this.name = name;
  }

  /** The plugin's answer; known after the first call. */
  get scope(): 'local' | 'global' {
    return this.#scope ?? 'local';
  }

  check(_name: string, _options: VolumeOptions): void {
    // The plugin checks its options itself.
  }

  /** An existing volume of the plugin is used as it is. */
  async create({ name, options = {} }: Volume): Promise<void> {
    const plugin = await this.#plugin();
    if ((await lookUp(plugin, name)) === undefined) {
      await plugin.call('VolumeDriver.Create', { Name: name, Opts: options }, Nothing);
    }
  }

  async remove({ name }: Volume, forget: () => void): Promise<boolean> {
    const plugin = await this.#plugin();
    const isThere = (await lookUp(plugin, name)) !== undefined;
    if (isThere) await plugin.call('VolumeDriver.Remove', { Name: name }, Nothing);
    forget();
    return isThere;
  }

  needsMount(): boolean {
    return true;
  }

  async mount({ name }: Volume, user: string): Promise<string> {
    const plugin = await this.#plugin();
    const { Mountpoint = '' } = await plugin.call('VolumeDriver.Mount', { Name: name, ID: user }, Place);
    const path = Mountpoint === '' ? await pathOf(plugin, name) : Mountpoint;
    if (path !== '') return plugin.show(path, viewOf(name, user));
    throw new EngineError('failed', `VolumeDriver.Mount: plugin "${this.name}" did not say where volume ${name} is`);
  }

  async unmount({ name }: Volume, user: string): Promise<void> {
    const plugin = await this.#plugin();
    plugin.hide(viewOf(name, user));
    await plugin.call('VolumeDriver.Unmount', { Name: name, ID: user }, Nothing);
  }

  async look({ name }: Volume): Promise<VolumeFacts | undefined> {
    const plugin = await this.#plugin(SHORT);
    const found = await lookUp(plugin, name, SHORT);
    if (found === undefined) return undefined;
    const { Mountpoint = '', Status: status } = found;
    const path = Mountpoint === '' ? await pathOf(plugin, name, SHORT) : Mountpoint;
    return { path: path === '' ? '' : plugin.hostPath(path), ...(status !== undefined && { status }) };
  }

  /** The plugin outlives us, and knows its mounts. */
  async reconcile(): Promise<void> {
    await Promise.resolve();
  }

  async #plugin(limits: CallLimits = {}): Promise<Plugin> {
    const plugin = await this.#plugins.get(this.name, 'VolumeDriver', limits);
    this.#scope ??= await scopeOf(plugin, limits);
    return plugin;
  }
}

/** Each user of a volume has a view of its own. */
function viewOf(volume: string, user: string): string {
  return `${volume} ${user}`;
}

/** Undefined if the plugin did not answer; older plugins do not know the question. */
async function scopeOf(plugin: Plugin, limits: CallLimits): Promise<'local' | 'global' | undefined> {
  try {
    const { Capabilities: known } = await plugin.call('VolumeDriver.Capabilities', {}, Capabilities, limits);
    return known?.Scope?.toLowerCase() === 'global' ? 'global' : 'local';
  } catch (error) {
    if (error instanceof PluginError) return error.how === 'silent' ? undefined : 'local';
    throw error;
  }
}

/**
 * The volume as its plugin has it. Undefined without it: a plugin answers without a volume, or says no by an error. Older
 * plugins do not know the question, and have what was made.
 */
async function lookUp(
  plugin: Plugin,
  name: string,
  limits: CallLimits = {},
): Promise<Static<typeof Found> | undefined> {
  try {
    const { Volume: found } = await plugin.call('VolumeDriver.Get', { Name: name }, Got, limits);
    return (found?.Name ?? name) === name ? found : undefined;
  } catch (error) {
    if (!(error instanceof PluginError) || error.how === 'silent') throw error;
    return error.status === 404 ? {} : undefined;
  }
}

/** Empty where the plugin does not say. */
async function pathOf(plugin: Plugin, name: string, limits: CallLimits = {}): Promise<string> {
  try {
    return (await plugin.call('VolumeDriver.Path', { Name: name }, Place, limits)).Mountpoint ?? '';
  } catch (error) {
    if (!(error instanceof PluginError) || error.how === 'silent') throw error;
    return '';
  }
}
