import type { JSX } from 'preact';

import { saveAs } from './transfers.ts';

/** More text makes a page slow. */
const MAX_SHOWN_BYTES = 256 * 1024;
const LOOKED_AT_BYTES = 8192;

export type OpenedFile = Readonly<{ path: string; content: Uint8Array<ArrayBuffer> }>;

/** The text of a file. */
export function FileView({ file: { path, content }, close }: { file: OpenedFile; close: () => void }): JSX.Element {
  const isText = !content.subarray(0, LOOKED_AT_BYTES).includes(0);
  const isWhole = content.length <= MAX_SHOWN_BYTES;
  return (
    <section aria-label="File">
      <div class="bar">
        <button type="button" onClick={close}>
          Close
        </button>
        <bdi>{path}</bdi>
        <button type="button" onClick={() => saveAs(new Blob([content]), path.slice(path.lastIndexOf('/') + 1))}>
          Download
        </button>
        {isText && !isWhole && <span class="soft">Only the first 256 kB are shown.</span>}
      </div>
      {isText ? (
        <pre class="file" tabIndex={0}>
          {new TextDecoder().decode(content.subarray(0, MAX_SHOWN_BYTES))}
        </pre>
      ) : (
        <p class="empty">This is not a text.</p>
      )}
    </section>
  );
}
