import type { FileList } from '@gantry/engine/containers/schema.ts';

import { apiUrl, call, open } from '../api/request.ts';
import { firstFile, packTar, type TarFile } from '../parts/tar.ts';

export type Entry = FileList['Entries'][number];
/** The owner of the files, as a path of the API: `/containers/ID` or `/volumes/NAME`. */
export type Owner = `/containers/${string}` | `/volumes/${string}`;

/** Larger files are downloaded as archives, which the browser writes to the disk as they come. */
export const MAX_OPENED_BYTES = 64 * 1024 * 1024;

export async function listFolder(owner: Owner, path: string): Promise<FileList> {
  return await call<FileList>('GET', `${owner}/files`, { query: { path } });
}

/** The path of an entry; that of its target for a link. */
export function pathOf(folder: string, { Name, Target }: Pick<Entry, 'Name' | 'Target'>): string {
  const name = Target === '' ? Name : Target;
  return name.startsWith('/') ? name : `${folder === '/' ? '' : folder}/${name}`;
}

/** The content of a plain file. */
export async function readContent(owner: Owner, path: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await open('GET', `${owner}/archive`, { query: { path } });
  const content = firstFile(new Uint8Array(await response.arrayBuffer()));
  if (content === undefined) throw new Error(`${path} is not a plain file`);
  return content;
}

/** Where a browser gets a path with all below it. */
export function archiveUrl(owner: Owner, path: string): string {
  return apiUrl(`${owner}/archive`, { path });
}

export async function uploadFiles(owner: Owner, folder: string, files: readonly TarFile[]): Promise<void> {
  const query = { path: folder, noOverwriteDirNonDir: true };
  await call('PUT', `${owner}/archive`, { query, body: packTar(files) });
}

/** Gives bytes to the person as a file. */
export function saveAs(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
