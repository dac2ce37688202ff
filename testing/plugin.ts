import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

export type PluginCall = Readonly<{ method: string; body: Record<string, unknown> }>;
/** The answer; a number is a status without a body, a text is the body itself. */
type Reply = Record<string, unknown> | number | string;
export type PluginMethods = Readonly<Record<string, (body: Record<string, string>) => Reply | Promise<Reply>>>;

/** A plugin of docker's protocol on a Unix socket, written from its documentation; it records its requests. */
export class TestPlugin implements AsyncDisposable {
  readonly calls: PluginCall[] = [];
  readonly socketPath: string;
  readonly #server: Server;

  private constructor(socketPath: string, kinds: readonly string[], methods: PluginMethods) {
    this.socketPath = socketPath;
    this.#server = createServer((request, response) => {
      const method = request.url?.slice(1) ?? '';
      const answer = async (): Promise<void> => {
        const sent = await text(request);
        const body = JSON.parse(sent === '' ? '{}' : sent) as Record<string, string>;
        this.calls.push({ method, body });
        const known = method === 'Plugin.Activate' ? () => ({ Implements: kinds }) : methods[method];
        const reply = (await known?.(body)) ?? 404;
        response.statusCode = statusOf(reply);
        response.end(typeof reply === 'number' ? '' : typeof reply === 'string' ? reply : JSON.stringify(reply));
      };
      answer().catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async start(socketPath: string, kinds: readonly string[], methods: PluginMethods): Promise<TestPlugin> {
    mkdirSync(dirname(socketPath), { recursive: true });
    const plugin = new TestPlugin(socketPath, kinds, methods);
    plugin.#server.listen(socketPath).unref();
    await once(plugin.#server, 'listening');
    return plugin;
  }

  methods(): string[] {
    return this.calls.map(({ method }) => method);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    rmSync(this.socketPath, { force: true });
  }
}

function statusOf(reply: Reply): number {
  if (typeof reply === 'number') return reply;
  return typeof reply !== 'string' && 'Err' in reply && reply.Err !== '' ? 500 : 200;
}

/** Volumes in folders below one; `place` has their files. */
export async function volumePlugin(
  socketPath: string,
  place: string,
  instead: PluginMethods = {},
): Promise<TestPlugin> {
  const volumes = new Map<string, { options: unknown; users: string[] }>();
  const pathOf = (name = ''): string => join(place, name);
  return await TestPlugin.start(socketPath, ['VolumeDriver'], {
    'VolumeDriver.Capabilities': () => ({ Capabilities: { Scope: 'global' } }),
    'VolumeDriver.Create': ({ Name = '', Opts }) => {
      const options = Opts as unknown as Record<string, string>;
      if (options.refuse !== undefined) return { Err: `refused: ${options.refuse}` };
      volumes.set(Name, { options, users: [] });
      mkdirSync(pathOf(Name), { recursive: true });
      return { Err: '' };
    },
    'VolumeDriver.Get': ({ Name = '' }) => {
      const volume = volumes.get(Name);
      if (volume === undefined) return { Err: 'no such volume' };
      return { Volume: { Name, Mountpoint: pathOf(Name), Status: { users: volume.users.length } }, Err: '' };
    },
    'VolumeDriver.Path': ({ Name }) => ({ Mountpoint: pathOf(Name), Err: '' }),
    'VolumeDriver.Mount': ({ Name = '', ID = '' }) => {
      volumes.get(Name)?.users.push(ID);
      return { Mountpoint: pathOf(Name), Err: '' };
    },
    'VolumeDriver.Unmount': ({ Name = '', ID = '' }) => {
      const volume = volumes.get(Name);
      if (volume !== undefined) volume.users = volume.users.filter((user) => user !== ID);
      return { Err: '' };
    },
    'VolumeDriver.Remove': ({ Name = '' }) => {
      volumes.delete(Name);
      rmSync(pathOf(Name), { recursive: true, force: true });
      return { Err: '' };
    },
    ...instead,
  });
}
