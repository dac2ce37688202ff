import { Type } from 'typebox';

import { EngineError } from '../lib/errors.ts';
import type { CallLimits, Plugin, Plugins } from '../plugins/plugins.ts';
import type { VolumeDriver, VolumeOptions } from './driver.ts';
import type { Volume } from './store.ts';

const Nothing = Type.Object({});
const Place = Type.Object({ Mountpoint: Type.Optional(Type.String()) });
const Got = Type.Object({
  Volume: Type.Optional(
    Type.Union([
      Type.Object({
        Name: Type.String(),
        Mountpoint: Type.Optional(Type.String()),
        Status: Type.Optional(Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()])),
      }),
      Type.Null(),
    ]),
  ),
});
const Capabilities = Type.Object({ Capabilities: Type.Object({ Scope: Type.Optional(Type.String()) }) });

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
    if (await isThere(plugin, name)) return;
    await plugin.call('VolumeDriver.Create', { Name: name, Opts: options }, Nothing);
  }

  async remove({ name }: Volume, forget: () => void): Promise<void> {
    const plugin = await this.#plugin();
    if (await isThere(plugin, name)) await plugin.call('VolumeDriver.Remove', { Name: name }, Nothing);
    forget();
  }

  needsMount(): boolean {
    return true;
  }

  async mount({ name }: Volume, user: string): Promise<string> {
    const plugin = await this.#plugin();
    const { Mountpoint = '' } = await plugin.call('VolumeDriver.Mount', { Name: name, ID: user }, Place);
    if (Mountpoint !== '') return plugin.show(Mountpoint, viewOf(name, user));
    throw new EngineError('failed', `VolumeDriver.Mount: plugin "${this.name}" did not say where volume ${name} is`);
  }

  async unmount({ name }: Volume, user: string): Promise<void> {
    const plugin = await this.#plugin();
    plugin.hide(viewOf(name, user));
    await plugin.call('VolumeDriver.Unmount', { Name: name, ID: user }, Nothing);
  }

  async path({ name }: Volume): Promise<string> {
    const plugin = await this.#plugin(SHORT);
    const { Mountpoint = '' } = await plugin.call('VolumeDriver.Path', { Name: name }, Place, SHORT);
    return Mountpoint === '' ? '' : plugin.hostPath(Mountpoint);
  }

  async status({ name }: Volume): Promise<Readonly<Record<string, unknown>> | undefined> {
    const plugin = await this.#plugin(SHORT);
    return (await plugin.call('VolumeDriver.Get', { Name: name }, Got, SHORT)).Volume?.Status ?? undefined;
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

/** Older plugins do not know the question. */
async function scopeOf(plugin: Plugin, limits: CallLimits): Promise<'local' | 'global'> {
  try {
    const { Scope = '' } = (await plugin.call('VolumeDriver.Capabilities', {}, Capabilities, limits)).Capabilities;
    return Scope.toLowerCase() === 'global' ? 'global' : 'local';
  } catch (error) {
    if (error instanceof EngineError) return 'local';
    throw error;
  }
}

/** A plugin says no by an error. */
async function isThere(plugin: Plugin, name: string): Promise<boolean> {
  try {
    return (await plugin.call('VolumeDriver.Get', { Name: name }, Got)).Volume?.Name === name;
  } catch (error) {
    if (error instanceof EngineError) return false;
    throw error;
  }
}
