import type { Api } from '@gantry/testing/api.ts';
import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';

export type Line = {
  stream?: string;
  error?: string;
  errorDetail?: { code?: number; message: string };
  status?: string;
};
export type Files = Readonly<Record<string, string | Partial<TarEntry>>>;

/** An archive of files: texts, or entries of their own. */
export function contextOf(files: Files): Buffer {
  const tar = new TarWriter();
  for (const [name, file] of Object.entries(files)) {
    tar.add(typeof file === 'string' ? { name, content: file } : { name, ...file });
  }
  return tar.end();
}

export type Built = Readonly<{ status: number; message: string | undefined; lines: Line[]; id: string | undefined }>;

/** Builds, and collects the output. */
export async function build(
  api: Api,
  query: string,
  body: Buffer,
  headers: Record<string, string> = {},
): Promise<Built> {
  const answer = await api.post<{ message?: string }>(`/build?${query}`, body, {
    headers: { 'Content-Type': 'application/x-tar', ...headers },
  });
  const lines =
    answer.status === 200
      ? answer.raw
          .toString()
          .split('\n')
          .filter((line) => line.trim() !== '')
          .map((line) => JSON.parse(line) as Line)
      : [];
  const text = lines.map(({ stream = '' }) => stream).join('');
  const id = /Successfully built ([0-9a-f]{12})/.exec(text)?.[1] ?? /^(sha256:[0-9a-f]{64})\n$/.exec(text)?.[1];
  return { status: answer.status, message: answer.status === 200 ? undefined : answer.body.message, lines, id };
}

type Image = {
  Config: object;
  ContainerConfig: object;
  Author: string;
  Comment: string;
  RootFS: { Layers?: string[] };
  Parent: string;
  Os: string;
};
type History = { CreatedBy: string; Comment: string; Size: number; Tags: string[] | null; Id: string }[];

/** The comparable part of a build: ids are numbered in the order of their appearance. */
export async function told(api: Api, { status, message, lines, id }: Built): Promise<unknown> {
  // Colors begin and end with each write of the program, which may be one or several.
  const text = lines
    .map(({ stream = '' }) => stream)
    .join('')
    .replaceAll('\x1B[0m\x1B[91m', '');
  const error = lines.find((line) => line.error !== undefined);
  const ids = new Map<string, string>();
  const numbered = (words: string): string =>
    words.replaceAll(/\b(?:[0-9a-f]{64}|[0-9a-f]{12})\b/g, (each) => {
      const short = each.slice(0, 12);
      if (!ids.has(short)) ids.set(short, `<id ${ids.size + 1}>`);
      return ids.get(short)!;
    });
  const said = {
    status,
    message,
    text: numbered(text),
    error: error && numbered(JSON.stringify(error)).replaceAll('crun create', 'runc create'),
  };
  if (id === undefined) return said;
  const image = (await api.get<Image>(`/images/${id}/json`)).body;
  const history = (await api.get<History>(`/images/${id}/history`)).body;
  return {
    ...said,
    config: withoutIds(image.Config),
    containerConfig: withoutIds(image.ContainerConfig),
    author: image.Author,
    comment: image.Comment,
    layers: image.RootFS.Layers?.length ?? 0,
    hasParent: image.Parent !== '',
    history: history.map(({ CreatedBy, Comment, Size, Tags }) => ({ CreatedBy, Comment, isEmpty: Size === 0, Tags })),
  };
}

/** The name of the host is the id of the step's container. */
function withoutIds(config: object): unknown {
  const { Hostname = '', Image = '' } = config as { Hostname?: string; Image?: string };
  return { ...config, Hostname: Hostname === '' ? '' : '<id>', Image: Image === '' ? '' : '<image>' };
}
