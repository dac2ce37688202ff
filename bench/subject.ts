import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';

import type { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';

const LOG_LINES = 200_000;
const LARGE_BYTES = 30 * 1024 * 1024;
/** The number of files matters more than their bytes. */
const FILES = { small: { count: 5000, bytes: 2048 }, medium: { count: 300, bytes: 100 * 1024 } };

export type ImageKind = 'large' | keyof typeof FILES;

/** Commands of busybox that write 100 MB. */
const OUTPUTS = {
  zeros: 'dd if=/dev/zero bs=1M count=100 status=none',
  'zeros in small writes': 'head -c 104857600 /dev/zero',
  'a program': 'i=0; while [ $i -lt 100 ]; do head -c 1048576 /bin/busybox; i=$((i + 1)); done',
  'text in UTF-8': "yes 'Grüße aus Köln, 漢字, 100 € – and plain words' | head -c 104857600",
};

export type Output = keyof typeof OUTPUTS;

const OUTPUT_BYTES = 100 * 1024 * 1024;

/** The work for both engines, through the API only. */
export class Subject {
  readonly #api: Api;
  #sleeper = '';
  #logged = '';
  #updates = 0;
  #fill: string[] = [];
  readonly #images: Record<ImageKind, string[]> = { large: [], medium: [], small: [] };

  constructor(api: Api) {
    this.#api = api;
  }

  /** 200 stopped containers for the list, one running for exec and inspect. */
  async prepare(): Promise<void> {
    for (let count = 0; count < 199; count += 1) this.#fill.push(await this.#create(['true']));
    this.#sleeper = await this.#start(['sleep', '100000']);
    this.#fill.push(this.#sleeper);
  }

  async clear(): Promise<void> {
    for (const id of [...this.#fill, this.#logged].filter(Boolean)) await this.#remove(id);
    for (const name of Object.values(this.#images).flat()) await this.#expect('DELETE', `/images/${name}`, 200);
  }

  /** Create, start, wait, remove. */
  async runTrue(network: string): Promise<void> {
    const id = await this.#create(['true'], { HostConfig: { NetworkMode: network } });
    await this.#expect('POST', `/containers/${id}/start`, 204);
    await this.#expect('POST', `/containers/${id}/wait`, 200);
    await this.#expect('DELETE', `/containers/${id}`, 204);
  }

  async startPublished(): Promise<number> {
    const id = await this.#create(['sleep', '1000'], {
      ExposedPorts: { '80/tcp': {} },
      HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '' }] } },
    });
    const spent = await timed(async () => await this.#expect('POST', `/containers/${id}/start`, 204));
    await this.#remove(id);
    return spent;
  }

  async startParallel(count: number): Promise<number> {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) ids.push(await this.#create(['sleep', '1000']));
    const spent = await timed(
      async () => await Promise.all(ids.map(async (id) => await this.#expect('POST', `/containers/${id}/start`, 204))),
    );
    await Promise.all(ids.map(async (id) => await this.#remove(id)));
    return spent;
  }

  async stopObedient(): Promise<number> {
    const id = await this.#start(['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 1000 & wait; done']);
    await this.#ready(id);
    const spent = await timed(async () => await this.#expect('POST', `/containers/${id}/stop`, 204));
    await this.#remove(id);
    return spent;
  }

  async execTrue(): Promise<void> {
    const created = await this.#api.post<{ Id: string }>(`/containers/${this.#sleeper}/exec`, {
      Cmd: ['true'],
      AttachStdout: true,
      AttachStderr: true,
    });
    await this.#expect('POST', `/exec/${created.body.Id}/start`, 200, { Detach: false, Tty: false });
    const { body } = await this.#api.get<{ ExitCode: number }>(`/exec/${created.body.Id}/json`);
    if (body.ExitCode !== 0) throw new Error(`exec ended with ${body.ExitCode}`);
  }

  async list(): Promise<void> {
    const { body } = await this.#api.get<unknown[]>('/containers/json?all=1');
    if (body.length !== 200) throw new Error(`200 containers expected, ${body.length} listed`);
  }

  async inspect(): Promise<void> {
    await this.#expect('GET', `/containers/${this.#sleeper}/json`, 200);
  }

  /** A container that writes 200,000 lines; from its start to its end. */
  async writeLog(): Promise<number> {
    if (this.#logged !== '') await this.#remove(this.#logged);
    this.#logged = await this.#create(['seq', String(LOG_LINES)]);
    return await timed(async () => {
      await this.#expect('POST', `/containers/${this.#logged}/start`, 204);
      await this.#expect('POST', `/containers/${this.#logged}/wait`, 200);
    });
  }

  async readLog(tail: string): Promise<void> {
    if (this.#logged === '') await this.writeLog(); // in the uncounted round
    const { raw } = await this.#api.get(`/containers/${this.#logged}/logs?stdout=1&stderr=1&tail=${tail}`);
    if (!raw.toString('latin1').endsWith(`${LOG_LINES}\n`)) throw new Error('the log does not end with its last line');
  }

  /** A container that writes 100 MB into its log; from its start to its end. */
  async log(output: Output): Promise<number> {
    const id = await this.#create(['sh', '-c', OUTPUTS[output]]);
    const spent = await timed(async () => {
      await this.#expect('POST', `/containers/${id}/start`, 204);
      await this.#expect('POST', `/containers/${id}/wait`, 200);
    });
    await this.#remove(id);
    return spent;
  }

  /** Attached before the start, without a log; every byte is counted. */
  async attach(output: Output): Promise<number> {
    const id = await this.#create(['sh', '-c', OUTPUTS[output]], {
      AttachStdout: true,
      HostConfig: { LogConfig: { Type: 'none' } },
    });
    const { socket } = await this.#api.hijack(`/containers/${id}/attach?stream=1&stdout=1`);
    const spent = await timed(async () => {
      await this.#expect('POST', `/containers/${id}/start`, 204);
      let payload = 0;
      for await (const chunk of socket as AsyncIterable<Buffer>) payload += chunk.length;
      if (payload < OUTPUT_BYTES) throw new Error(`only ${payload} bytes came`);
    });
    await this.#remove(id);
    return spent;
  }

  /** An image whose layers are new to the engine: a removal in the background would disturb the other's round. */
  async load(kind: ImageKind): Promise<number> {
    const images = this.#images[kind];
    const name = `bench/${kind}:${images.length}`;
    const archive = imageArchive(layerOf(kind, images.length), [name]);
    images.push(name);
    return await timed(async () => {
      const { status, raw } = await this.#api.post('/images/load?quiet=1', archive);
      const text = raw.toString();
      if (status !== 200 || !text.includes('Loaded image')) throw new Error(`load answered ${status}: ${text}`);
    });
  }

  /** Saves the image that was loaded last, to its last byte. */
  async save(kind: ImageKind): Promise<void> {
    const response = await this.#api.stream('GET', `/images/${this.#images[kind].at(-1)}/get`);
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) bytes += chunk.length;
    const least = kind === 'large' ? LARGE_BYTES : FILES[kind].count * FILES[kind].bytes;
    if (bytes < least) throw new Error(`only ${bytes} bytes came`);
  }

  /** One sample of a running container. */
  async statsOnce(): Promise<void> {
    await this.#expect('GET', `/containers/${this.#sleeper}/stats?stream=0`, 200);
  }

  /** Other limits of CPU and memory each time. */
  async update(): Promise<void> {
    this.#updates += 1;
    const bytes = (64 + (this.#updates % 64)) * 1024 * 1024;
    await this.#expect('POST', `/containers/${this.#sleeper}/update`, 200, {
      CpuShares: 100 + this.#updates,
      Memory: bytes,
      MemorySwap: bytes * 2,
    });
  }

  /** Streams of one container's statistics, each of which has had a sample; disposing closes them. */
  async watching(count: number): Promise<Disposable> {
    const left = new AbortController();
    const path = `/containers/${this.#sleeper}/stats`;
    const streams = Array.from({ length: count }, async () => {
      const stream = await this.#api.stream('GET', path, { signal: left.signal });
      stream.on('error', () => undefined).resume();
      await once(stream, 'data');
    });
    await Promise.all(streams);
    return { [Symbol.dispose]: () => left.abort() };
  }

  async sleeping(): Promise<AsyncDisposable> {
    const id = await this.#start(['sleep', '1000']);
    return { [Symbol.asyncDispose]: async () => await this.#remove(id) };
  }

  async #create(command: string[], body: Record<string, unknown> = {}): Promise<string> {
    const answer = await this.#api.post<{ Id: string }>('/containers/create', {
      Image: 'busybox',
      Cmd: command,
      ...body,
    });
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body.Id;
  }

  async #start(command: string[]): Promise<string> {
    const id = await this.#create(command);
    await this.#expect('POST', `/containers/${id}/start`, 204);
    return id;
  }

  /** A shell sets its trap only after it has started: wait until it sleeps in its loop. */
  async #ready(id: string): Promise<void> {
    const created = await this.#api.post<{ Id: string }>(`/containers/${id}/exec`, {
      Cmd: ['sh', '-c', 'until pidof sleep; do :; done'],
      AttachStdout: true,
    });
    await this.#expect('POST', `/exec/${created.body.Id}/start`, 200, { Detach: false, Tty: false });
  }

  async #remove(id: string): Promise<void> {
    await this.#expect('DELETE', `/containers/${id}?force=1&v=1`, 204);
  }

  async #expect(method: string, path: string, status: number, body?: unknown): Promise<void> {
    const answer = await this.#api.request(method, path, { body });
    if (answer.status !== status)
      throw new Error(`${method} ${path} answered ${answer.status}: ${answer.raw.toString().slice(0, 500)}`);
  }
}

const noise = randomFillSync(Buffer.alloc(LARGE_BYTES));

/** A layer of the same size each time, but different content; both engines get the same. */
function layerOf(kind: ImageKind, number: number): Buffer {
  noise.writeUInt32BE(number, 0);
  const tar = new TarWriter();
  if (kind === 'large') return tar.add({ name: 'large', content: noise }).end();
  const { count, bytes } = FILES[kind];
  tar.add({ name: `number-${number}` });
  for (let index = 0; index < count; index += 1) {
    if (index % 50 === 0) tar.add({ name: `folder-${index / 50}/`, type: 'directory', mode: 0o755 });
    const content = noise.subarray(index * bytes, (index + 1) * bytes);
    tar.add({ name: `folder-${Math.floor(index / 50)}/file-${index}`, content });
  }
  return tar.end();
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
