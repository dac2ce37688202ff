import { randomFillSync } from 'node:crypto';

import type { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';

import { compare, type Budget, type Row } from './measure.ts';

const BYTES = 100 * 1024 * 1024;
const FILES = 2000;
const SMALL_BYTES = 50 * 1024;
const TAR = { headers: { 'Content-Type': 'application/x-tar' } };

const budgets: Budget<FilesSubject>[] = [
  { name: 'files: 100 MB into a container', unit: 'ms', atMost: 2 / 3, rounds: 5, work: async (s) => await s.put() },
  { name: 'files: 100 MB out of it', unit: 'ms', atMost: 2 / 3, rounds: 5, work: async (s) => await s.get() },
  { name: 'files: changes after 2,000 files', unit: 'ms', atMost: 0.5, work: async (s) => await s.changes() },
  {
    name: 'files: export of 130 MB and 2,000 files',
    unit: 'ms',
    atMost: 2 / 3,
    rounds: 5,
    work: async (s) => await s.export(),
  },
  // The last one: what it leaves would be exported too.
  {
    name: 'files: 2,000 files of 50 KB into a container',
    unit: 'ms',
    atMost: 2 / 3,
    rounds: 5,
    work: async (s) => await s.putMany(),
  },
];

/** Copies of files; both engines have the image `busybox`. */
export async function filesBudgets(ours: Api, theirs: Api, wanted: (name: string) => boolean): Promise<Row[]> {
  const chosen = budgets.filter(({ name }) => wanted(name));
  if (chosen.length === 0) return [];
  await using mine = await FilesSubject.make(ours);
  await using other = await FilesSubject.make(theirs);
  const rows: Row[] = [];
  for (const budget of chosen) rows.push(await compare(budget, mine, other));
  return rows;
}

const random = randomFillSync(Buffer.alloc(BYTES));
const noise = new TarWriter().add({ name: 'noise', content: random }).end();
const many = archiveOfMany();

function archiveOfMany(): Buffer {
  const tar = new TarWriter().add({ name: 'small/', type: 'directory', mode: 0o755 });
  for (let count = 0; count < FILES; count += 1) {
    tar.add({ name: `small/${count}`, content: random.subarray(count * SMALL_BYTES, (count + 1) * SMALL_BYTES) });
  }
  return tar.end();
}

class FilesSubject implements AsyncDisposable {
  readonly #api: Api;
  readonly #id: string;

  private constructor(api: Api, id: string) {
    this.#api = api;
    this.#id = id;
  }

  /** A running container that has written 2,000 files and holds 100 MB. */
  static async make(api: Api): Promise<FilesSubject> {
    const script = `mkdir /many; i=0; while [ $i -lt ${FILES} ]; do echo $i >/many/$i; i=$((i + 1)); done; exec sleep 100000`;
    const body = { Image: 'busybox', Cmd: ['sh', '-c', script] };
    const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
    const subject = new FilesSubject(api, Id);
    await api.post(`/containers/${Id}/start`);
    while ((await subject.#changes()) < FILES);
    await subject.put();
    return subject;
  }

  async put(): Promise<void> {
    await this.#put(noise);
  }

  async putMany(): Promise<void> {
    await this.#put(many);
  }

  async get(): Promise<void> {
    await this.#read('archive?path=/tmp/noise', BYTES);
  }

  async export(): Promise<void> {
    await this.#read('export', BYTES + FILES * 1024);
  }

  async changes(): Promise<void> {
    if ((await this.#changes()) < FILES) throw new Error('changes are missing');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.delete(`${this.#path}?force=1`);
  }

  get #path(): string {
    return `/containers/${this.#id}`;
  }

  async #put(body: Buffer): Promise<void> {
    const { status, raw } = await this.#api.request('PUT', `${this.#path}/archive?path=/tmp`, { ...TAR, body });
    if (status !== 200) throw new Error(raw.toString());
  }

  async #changes(): Promise<number> {
    return ((await this.#api.get<unknown[] | null>(`${this.#path}/changes`)).body ?? []).length;
  }

  async #read(what: string, least: number): Promise<void> {
    let bytes = 0;
    for await (const chunk of (await this.#api.stream('GET', `${this.#path}/${what}`)) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
    }
    if (bytes < least) throw new Error(`only ${bytes} bytes came`);
  }
}
