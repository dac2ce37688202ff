import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import type { TarSink } from '../tar/tar-reader.ts';
import { rebuild } from './rebuild.ts';
import { SkeletonRecorder } from './recorder.ts';
import { SkeletonWriter } from './skeleton-file.ts';

const CHUNK_BYTES = 256 * 1024;

/** An archive under extraction: its folder, and whether each file has the content of one entry. */
type Archive = Readonly<{ folder: string; digest: string; bytes: number; isPlain: boolean }>;

/** The skeleton of an archive that is being extracted. */
export class SkeletonAttempt implements Disposable {
  readonly recorder: SkeletonRecorder;
  readonly #writer: SkeletonWriter;
  readonly #file: string;

  constructor(sink: TarSink, file: string) {
    this.#file = file;
    this.#writer = new SkeletonWriter(file);
    this.recorder = new SkeletonRecorder(sink, this.#writer);
  }

  /**
   * Whether the archive can be rebuilt from the skeleton and the extracted files. It can if each file has the content
   * of one entry. Where this is unknown, as with hostile archives that have a name twice, it is tried. A useless
   * skeleton is removed.
   */
  async gives({ folder, digest, bytes, isPlain }: Archive): Promise<boolean> {
    this.#writer.end();
    const isSmall = this.#writer.sizeBytes < bytes / 2;
    if (isSmall && (isPlain || (await digestOf(this.#file, folder)) === digest)) return true;
    rmSync(this.#file);
    return false;
  }

  [Symbol.dispose](): void {
    this.#writer[Symbol.dispose]();
  }
}

/** Undefined if the files do not fit the skeleton: a later entry has replaced one. */
async function digestOf(skeleton: string, folder: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  const memory = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  try {
    for (const chunk of rebuild(skeleton, folder, () => memory)) {
      hash.update(chunk);
      await setImmediate(); // yields to other work of this thread
    }
  } catch {
    return undefined; // the archive is kept whole
  }
  return `sha256:${hash.digest('hex')}`;
}
