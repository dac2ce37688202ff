import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import { endProcess } from '../daemon-process.ts';
import type { Fault, FromWorker, Hit, Seen, ToWorker } from './registry-worker.ts';

type Message = ToWorker extends infer M ? (M extends { id: number } ? Omit<M, 'id'> : never) : never;
type Answer = { status: number; headers: Record<string, string>; body: Buffer };

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const CONFIG = 'application/vnd.docker.container.image.v1+json';
const LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip';

export type Descriptor = { mediaType: string; digest: string; size: number; [more: string]: unknown };

/**
 * Debian's docker-registry in the network namespace of an engine under test, on its loopback, with proxies and requests
 * to it.
 */
export class Registries implements AsyncDisposable {
  readonly #directory: string;
  readonly #netns: string;
  readonly #worker: ChildProcess;
  readonly #processes: ChildProcess[] = [];
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #last = 0;

  private constructor(directory: string, netns: string, worker: ChildProcess) {
    this.#directory = directory;
    this.#netns = netns;
    this.#worker = worker;
    worker.on('message', ({ id, result }: FromWorker) => {
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  static async start(netns: string): Promise<Registries> {
    const directory = await mkdtemp(join(tmpdir(), 'registries-'));
    const command = [`--net=${netns}`, process.execPath, join(import.meta.dirname, 'registry-worker.ts')];
    const worker = spawn('nsenter', command, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    return new Registries(directory, netns, worker);
  }

  /**
   * A registry on this port of an address. `users`: the accepted names and passwords. `tls.clients`: the authorities of
   * certificates that clients must show. `isOld`: it takes and makes manifests of schema 1.
   */
  async registry(
    port: number,
    {
      users,
      tls,
      address = '127.0.0.1',
      isOld = false,
    }: {
      users?: Record<string, string>;
      tls?: { cert: string; key: string; clients?: string };
      address?: string;
      isOld?: boolean;
    } = {},
  ): Promise<void> {
    const config = {
      version: 0.1,
      log: { level: 'error', accesslog: { disabled: true } },
      storage: {
        filesystem: { rootdirectory: join(this.#directory, `store-${address}-${port}`) },
        delete: { enabled: true },
      },
      http: { addr: `${address}:${port}`, ...(tls && { tls: tlsOf(tls) }) },
      ...(isOld && { compatibility: { schema1: { enabled: true } } }),
      ...(users && { auth: { htpasswd: { realm: 'test', path: this.#htpasswd(port, users) } } }),
    };
    const file = join(this.#directory, `registry-${address}-${port}.json`);
    writeFileSync(file, JSON.stringify(config));
    const child = spawn('nsenter', [`--net=${this.#netns}`, 'docker-registry', 'serve', file], {
      stdio: 'ignore',
    });
    this.#processes.push(child);
    for (;;) {
      if (child.exitCode !== null) throw new Error(`docker-registry ended with ${child.exitCode}`);
      const answer = await this.#call({
        kind: 'request',
        method: 'GET',
        url: `http://${address}:${port}/v2/`,
        headers: {},
        body: '',
      });
      if (!(answer as { error?: string }).error?.includes('ECONNREFUSED')) return;
      await pause(50);
    }
  }

  /** Removes the content of a registry. */
  async wipe(port: number, address = '127.0.0.1'): Promise<void> {
    await rm(join(this.#directory, `store-${address}-${port}`, 'docker'), { recursive: true, force: true });
  }

  /** The proxy on another port before one of the registries. */
  async proxy(port: number, upstream: number, token?: { user: string; password: string }): Promise<void> {
    await this.#call({ kind: 'listen', port, upstream, ...(token && { token }) });
  }

  /** A proxy as the environment names one; with `authorization` it wants this from its clients. */
  async forwarder(port: number, authorization?: string): Promise<void> {
    await this.#call({ kind: 'forward', port, ...(authorization !== undefined && { authorization }) });
  }

  /** An index of version 1, to be searched, on this port of all addresses. */
  async index(port: number, hits: readonly Hit[]): Promise<void> {
    await this.#call({ kind: 'index', port, hits });
  }

  async faults(...faults: Fault[]): Promise<void> {
    await this.#call({ kind: 'faults', faults });
  }

  /** The requests that the proxies got since the last call. */
  async seen(): Promise<Seen[]> {
    return (await this.#call({ kind: 'seen' })) as Seen[];
  }

  async release(): Promise<void> {
    await this.#call({ kind: 'release' });
  }

  async request(
    method: string,
    url: string,
    { body = Buffer.alloc(0), headers = {} }: { body?: Buffer; headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const sent = { kind: 'request', method, url, headers, body: body.toString('base64') } as const;
    const answer = (await this.#call(sent)) as {
      status: number;
      headers: Record<string, string>;
      body: string;
      error?: string;
    };
    if (answer.error !== undefined) throw new Error(answer.error);
    return { ...answer, body: Buffer.from(answer.body, 'base64') };
  }

  /** Puts a blob; returns its descriptor. */
  async putBlob(
    registry: string,
    content: Buffer,
    mediaType = LAYER,
    headers: Record<string, string> = {},
  ): Promise<Descriptor> {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
    const begun = await this.request('POST', `http://${registry}/blobs/uploads/`, { headers });
    const location = new URL(begun.headers.location!, `http://${registry}`);
    location.searchParams.set('digest', digest);
    const done = await this.request('PUT', location.href, { body: content, headers });
    if (done.status !== 201) throw new Error(`a blob was answered ${done.status}: ${done.body.toString()}`);
    return { mediaType, digest, size: content.length };
  }

  /** Puts a manifest under a tag or digest; `registry` is `127.0.0.1:5000/v2/name`. Returns its digest. */
  async putManifest(
    registry: string,
    tag: string,
    manifest: object,
    mediaType = MANIFEST,
    headers: Record<string, string> = {},
  ): Promise<Descriptor> {
    const body = Buffer.from(JSON.stringify(manifest));
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
    const answer = await this.request('PUT', `http://${registry}/manifests/${tag === '' ? digest : tag}`, {
      body,
      headers: { ...headers, 'content-type': mediaType },
    });
    if (answer.status !== 201) throw new Error(`a manifest was answered ${answer.status}: ${answer.body.toString()}`);
    return { mediaType, digest, size: body.length };
  }

  /** Puts an image of these layers (plain tars), with `fields` in its configuration; returns the manifest's descriptor. */
  async putImage(
    registry: string,
    tag: string,
    layers: readonly Buffer[],
    {
      config = {},
      headers = {},
      os = 'linux',
      fields = {},
    }: { config?: object; headers?: Record<string, string>; os?: string; fields?: object } = {},
  ): Promise<Descriptor & { id: string; layers: Descriptor[] }> {
    const put: Descriptor[] = [];
    for (const layer of layers) put.push(await this.putBlob(registry, gzipSync(layer), LAYER, headers));
    const json = JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os,
      created: '2024-01-01T00:00:00Z',
      config: { Cmd: ['sh'], ...config },
      rootfs: {
        type: 'layers',
        diff_ids: layers.map((layer) => `sha256:${createHash('sha256').update(layer).digest('hex')}`),
      },
      history: layers.map((_, index) => ({ created: '2024-01-01T00:00:00Z', created_by: `layer ${index}` })),
      ...fields,
    });
    const described = await this.putBlob(registry, Buffer.from(json), CONFIG, headers);
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, config: described, layers: put };
    return {
      ...(await this.putManifest(registry, tag, manifest, MANIFEST, headers)),
      id: described.digest,
      layers: put,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#processes) await endProcess(child);
    await endProcess(this.#worker);
    await rm(this.#directory, { recursive: true, force: true });
  }

  #htpasswd(port: number, users: Record<string, string>): string {
    const file = join(this.#directory, `htpasswd-${port}`);
    const script = 'print crypt($ARGV[0], q($2y$05$abcdefghijklmnopqrstuu))';
    const lines = Object.entries(users).map(
      ([name, password]) => `${name}:${execFileSync('perl', ['-e', script, password], { encoding: 'utf8' })}\n`,
    );
    writeFileSync(file, lines.join(''));
    return file;
  }

  async #call(message: Message): Promise<unknown> {
    this.#last += 1;
    const id = this.#last;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, resolve);
    this.#worker.send({ ...message, id });
    const stop = new AbortController();
    once(this.#worker, 'exit', { signal: stop.signal }).then(
      () => reject(new Error('the helper of the registries has ended')),
      () => undefined,
    );
    try {
      return await promise;
    } finally {
      stop.abort();
    }
  }
}

function tlsOf({ cert, key, clients }: { cert: string; key: string; clients?: string }): object {
  return { certificate: cert, key, ...(clients !== undefined && { clientcas: [clients] }) };
}
