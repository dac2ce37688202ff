import type { TarFile } from './tar.ts';

/** The files that were dropped on the page, with those in dropped folders. */
export async function droppedFiles({ items }: DataTransfer): Promise<TarFile[]> {
  // All are taken before the first wait: the browser empties the list then.
  const dropped = [...items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const files: TarFile[] = [];
  for (const one of dropped) {
    if (one instanceof File) files.push({ path: one.name, body: one }); // not from a disk, such as a picture of a page
    else if (one !== null) await collect(one, files);
  }
  return files;
}

/** Chosen files, under their names. */
export function chosenFiles(list: FileList | null): TarFile[] {
  return [...(list ?? [])].map((file) => ({ path: file.name, body: file }));
}

async function collect(entry: FileSystemEntry, files: TarFile[]): Promise<void> {
  const path = entry.fullPath.replace(/^\/+/, '');
  if (isFile(entry)) {
    files.push({ path, body: await new Promise<File>((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const inner of some) await collect(inner, files);
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}
