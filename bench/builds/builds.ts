import { randomFillSync } from 'node:crypto';

import type { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';

import { compare, type Budget, type Row } from '../measure.ts';

export const STEPS = 40;
const CONTEXT = { files: 2000, bytes: 100_000 };
const TAR = { headers: { 'Content-Type': 'application/x-tar' } };

export const EIGHT_STEPS = `FROM busybox
ENV PLACE=/data
RUN mkdir -p $PLACE
WORKDIR /data
COPY a b ./
RUN cat a b >c
LABEL made=here
CMD ["cat", "c"]
`;

const budgets: Budget<BuildSubject>[] = [
  {
    name: 'build of 8 steps',
    unit: 'ms',
    atMost: 1 / 3,
    rounds: 5,
    work: async (s) => await s.build('nocache=1', s.small),
  },
  {
    name: 'build of 8 steps, cached',
    unit: 'ms',
    atMost: 0.5,
    rounds: 25,
    work: async (s) => await s.build('', s.small),
  },
  {
    name: `build of ${STEPS} steps, cached, 200 MB sent`,
    unit: 'ms',
    atMost: 0.5,
    rounds: 5,
    work: async (s) => await s.build('', s.large),
  },
  { name: 'commit of 1 MB', unit: 'ms', atMost: 2 / 3, rounds: 15, work: async (s) => await s.commit() },
];

/** Builds; both engines have the image `busybox`. */
export async function buildBudgets(ours: Api, theirs: Api, wanted: (name: string) => boolean): Promise<Row[]> {
  const chosen = budgets.filter(({ name }) => wanted(name));
  if (chosen.length === 0) return [];
  await using mine = await BuildSubject.make(ours);
  await using other = await BuildSubject.make(theirs);
  const rows: Row[] = [];
  for (const budget of chosen) rows.push(await compare(budget, mine, other));
  return rows;
}

export const smallContext = new TarWriter()
  .add({ name: 'Dockerfile', content: EIGHT_STEPS })
  .add({ name: 'a', content: 'a\n' })
  .add({ name: 'b', content: 'b\n' })
  .end();

/** Many files, of which the steps copy folder after folder. */
export function largeContext(): Buffer {
  const noise = randomFillSync(Buffer.alloc(CONTEXT.bytes));
  const steps = Array.from({ length: STEPS - 1 }, (_, step) => `COPY folder-${step} /folder-${step}\n`);
  const tar = new TarWriter().add({ name: 'Dockerfile', content: `FROM busybox\n${steps.join('')}` });
  for (let file = 0; file < CONTEXT.files; file += 1) {
    noise.writeUInt32LE(file);
    tar.add({ name: `folder-${file % (STEPS - 1)}/${file}`, content: noise });
  }
  return tar.end();
}

class BuildSubject implements AsyncDisposable {
  readonly small = smallContext;
  readonly #api: Api;
  readonly #id: string;
  #commits = 0;
  #large: Buffer | undefined;

  private constructor(api: Api, id: string) {
    this.#api = api;
    this.#id = id;
  }

  /** A stopped container that has written 1 MB. */
  static async make(api: Api): Promise<BuildSubject> {
    const body = { Image: 'busybox', Cmd: ['dd', 'if=/dev/urandom', 'of=/data', 'bs=1M', 'count=1'] };
    const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
    await api.post(`/containers/${Id}/start`);
    await api.post(`/containers/${Id}/wait`);
    return new BuildSubject(api, Id);
  }

  get large(): Buffer {
    return (this.#large ??= largeContext());
  }

  async build(query: string, context: Buffer): Promise<void> {
    const { status, raw } = await this.#api.post(`/build?t=bench/build&${query}`, context, TAR);
    if (status !== 200 || !raw.includes('Successfully tagged')) throw new Error(raw.toString().slice(-500));
  }

  async commit(): Promise<void> {
    this.#commits += 1;
    const { status, raw } = await this.#api.post(
      `/commit?container=${this.#id}&repo=bench/commit&tag=${this.#commits}`,
    );
    if (status !== 201) throw new Error(raw.toString());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.delete(`/containers/${this.#id}?force=1`);
  }
}
