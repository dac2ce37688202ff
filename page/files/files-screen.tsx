import type { JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';

import { ApiFailure, isReadOnly } from '../api/request.ts';
import { chosenFiles, droppedFiles } from '../parts/dropped-files.ts';
import { useLoad } from '../parts/load.ts';
import { attempt, notify } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import type { TarFile } from '../parts/tar.ts';
import { countText, sizeText, timeText } from '../parts/texts.ts';
import { VirtualRows } from '../parts/virtual-rows.tsx';
import { FileView, type OpenedFile } from './file-view.tsx';
import {
  archiveUrl,
  listFolder,
  MAX_OPENED_BYTES,
  pathOf,
  readContent,
  uploadFiles,
  type Entry,
  type Owner,
} from './transfers.ts';

const ROW_HEIGHT = 34;

/** Files of a container or volume: browsed, viewed, downloaded; with `takesUploads` also uploaded, as by a drop. */
export function FilesScreen({ owner, takesUploads }: { owner: Owner; takesUploads: boolean }): JSX.Element {
  const [folder, setFolder] = useState('/');
  const [opened, setOpened] = useState<OpenedFile | undefined>(undefined);
  const [isOver, setOver] = useState(false);
  const readOnly = useStore(isReadOnly) || !takesUploads;
  const scroller = useRef<HTMLDivElement>(null);
  const { value: list, problem, reload } = useLoad(async () => await listFolder(owner, folder), `${owner} ${folder}`);
  const entries = (list?.Entries ?? []).toSorted(inOrder);
  const show = async (entry: Entry): Promise<void> => {
    const path = pathOf(folder, entry);
    if (entry.Type === 'directory') setFolder(path);
    else if (entry.Type === 'symlink' && (await isFolder(owner, path))) setFolder(path);
    else if (entry.Size > MAX_OPENED_BYTES) notify(`${entry.Name} is too large to be shown. Download its archive.`);
    else setOpened({ path, content: await readContent(owner, path) });
  };
  const upload = async (files: readonly TarFile[]): Promise<void> => {
    if (files.length === 0) return;
    await uploadFiles(owner, folder, files);
    notify(`Uploaded ${countText(files.length, 'file')} to ${folder}`);
    reload();
  };
  if (opened !== undefined) return <FileView file={opened} close={() => setOpened(undefined)} />;
  return (
    <section
      class={isOver ? 'screen over' : 'screen'}
      aria-label="Files"
      onDragOver={(event) => {
        event.preventDefault(); // else the browser leaves the page for the file
        setOver(!readOnly);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const { dataTransfer } = event;
        if (dataTransfer === null || readOnly) return;
        void attempt(async () => await upload(await droppedFiles(dataTransfer)));
      }}
    >
      <div class="bar">
        <Path folder={folder} go={setFolder} />
        {!readOnly && (
          <label class="upload">
            Upload, or drop files here
            <input
              type="file"
              multiple
              onChange={(event) => {
                const files = chosenFiles(event.currentTarget.files);
                void attempt(async () => await upload(files));
              }}
            />
          </label>
        )}
        {list?.Truncated === true && <span class="soft">Only 10,000 entries of this folder are shown.</span>}
      </div>
      {problem !== undefined && <p class="banner">{problem}</p>}
      <div class="scroller" ref={scroller}>
        <table class="rows" aria-rowcount={entries.length + 1}>
          <thead>
            <tr>
              <th>Name</th>
              <th class="number">Size</th>
              <th class="kind middle">Mode</th>
              <th class="time wide">Changed</th>
              <th class="check">
                <span class="hidden">Download</span>
              </th>
            </tr>
          </thead>
          <VirtualRows scroller={scroller} rows={entries} rowHeight={ROW_HEIGHT}>
            {(entry, index) => (
              <tr key={entry.Name} aria-rowindex={index + 2}>
                <td class="name">
                  <button
                    type="button"
                    class="row-link"
                    disabled={!['directory', 'file', 'symlink'].includes(entry.Type)}
                    onClick={() => void attempt(async () => await show(entry))}
                  >
                    <bdi>{entry.Name}</bdi>
                    {entry.Type === 'directory' ? '/' : ''}
                  </button>
                  {entry.Target !== '' && (
                    <span class="soft">
                      {' → '}
                      <bdi>{entry.Target}</bdi>
                    </span>
                  )}
                </td>
                <td class="number">{entry.Type === 'file' ? sizeText(entry.Size) : ''}</td>
                <td class="middle">{entry.Mode.toString(8)}</td>
                <td class="wide">{timeText(entry.Modified)}</td>
                <td class="check">
                  <a
                    href={archiveUrl(owner, pathOf(folder, { ...entry, Target: '' }))}
                    download={`${entry.Name}.tar`}
                    aria-label={`Download ${entry.Name} as an archive`}
                  >
                    ↓
                  </a>
                </td>
              </tr>
            )}
          </VirtualRows>
        </table>
        {list !== undefined && entries.length === 0 && <p class="empty">The folder is empty.</p>}
      </div>
    </section>
  );
}

/** The folders on the way to this one. */
function Path({ folder, go }: { folder: string; go: (folder: string) => void }): JSX.Element {
  const parts = folder.split('/').filter((part) => part !== '');
  return (
    <nav class="path" aria-label="Folder">
      <button type="button" onClick={() => go('/')}>
        /
      </button>
      {parts.map((part, index) => (
        <button key={index} type="button" onClick={() => go(`/${parts.slice(0, index + 1).join('/')}`)}>
          <bdi>{part}</bdi>
        </button>
      ))}
    </nav>
  );
}

async function isFolder(owner: Owner, path: string): Promise<boolean> {
  try {
    await listFolder(owner, path);
    return true;
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 400) return false;
    throw error;
  }
}

/** Folders first, then by name. */
function inOrder(one: Entry, other: Entry): number {
  const folders = Number(other.Type === 'directory') - Number(one.Type === 'directory');
  return folders !== 0 ? folders : one.Name.localeCompare(other.Name);
}
