import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { messageOfError, open } from '../api/request.ts';
import { bytesOf, jsonLines } from '../api/streams.ts';
import { chosenFiles, droppedFiles } from '../parts/dropped-files.ts';
import { attempt, notify } from '../parts/notices.tsx';
import { packTar, type TarFile } from '../parts/tar.ts';
import type { Progress } from './progress.tsx';

/** Older output goes: a build may print without an end. */
const MAX_OUTPUT = 100_000;

/** Builds an image of a folder or an archive that is dropped here, with its output. */
export function BuildDrop(): JSX.Element {
  const [name, setName] = useState('');
  const [output, setOutput] = useState('');
  const [isBusy, setBusy] = useState(false);
  const build = async (files: readonly TarFile[]): Promise<void> => {
    if (files.length === 0) return;
    setOutput('');
    setBusy(true);
    try {
      await buildImage(contextOf(files), name.trim(), (text) => setOutput((old) => (old + text).slice(-MAX_OUTPUT)));
      notify(name.trim() === '' ? 'Built an image' : `Built ${name.trim()}`);
    } catch (error) {
      notify(messageOfError(error), { isBad: true });
    }
    setBusy(false);
  };
  return (
    <section
      class="drop"
      aria-label="Build"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        const { dataTransfer } = event;
        if (dataTransfer !== null && !isBusy) void attempt(async () => await build(await droppedFiles(dataTransfer)));
      }}
    >
      <div class="bar">
        <input
          type="text"
          placeholder="name of the built image"
          aria-label="Name of the built image"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <label class="upload">
          {isBusy ? 'Building…' : 'Build: drop a folder with a Dockerfile here, or choose its archive'}
          <input
            type="file"
            multiple
            disabled={isBusy}
            onChange={(event) => {
              const files = chosenFiles(event.currentTarget.files);
              event.currentTarget.value = '';
              void build(files);
            }}
          />
        </label>
      </div>
      {output !== '' && (
        <pre class="file" aria-label="Output of the build" tabIndex={0}>
          {output}
        </pre>
      )}
    </section>
  );
}

/** A single archive is the context; of a single folder its files are. */
function contextOf(files: readonly TarFile[]): Blob {
  const [first] = files;
  if (files.length === 1 && /\.(?:tar|tar\.\w+|tgz)$/.test(first!.path)) {
    return new Blob([first!.body], { type: 'application/x-tar' });
  }
  const folder = /^[^/]+\//.exec(first!.path)?.[0] ?? '';
  const isInOne = folder !== '' && files.every(({ path }) => path.startsWith(folder));
  return packTar(files.map((file) => (isInOne ? { ...file, path: file.path.slice(folder.length) } : file)));
}

async function buildImage(context: Blob, name: string, onOutput: (text: string) => void): Promise<void> {
  const query = name === '' ? {} : { t: name };
  const response = await open('POST', '/build', { query, body: context });
  for await (const line of jsonLines<Progress>(bytesOf(response))) {
    if (line.stream !== undefined) onOutput(line.stream);
    if (line.error !== undefined) throw new Error(line.error);
  }
}
