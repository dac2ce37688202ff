import type { BytePath } from '../../host/files/openat.ts';
import { innerPath } from '../tar/entry-names.ts';
import type { TarEntry } from '../tar/tar-header.ts';
import type { TarSink } from '../tar/tar-reader.ts';
import type { SkeletonWriter } from './skeleton-file.ts';

/**
 * Stands between the reader and the extractor, and records all bytes of the archive that are not content of a file.
 * Only a rebuild shows whether the files give the archive: a later entry may have replaced an earlier one.
 */
export class SkeletonRecorder implements TarSink {
  readonly #sink: TarSink;
  readonly #writer: SkeletonWriter;
  #chunk: Buffer = Buffer.alloc(0);
  /** How much of the chunk is recorded. */
  #noted = 0;
  #path: BytePath | undefined;
  #run = { offset: 0, length: 0 };

  constructor(sink: TarSink, writer: SkeletonWriter) {
    this.#sink = sink;
    this.#writer = writer;
  }

  /** Passes a chunk of the archive to its reader, which calls this sink for parts of this very memory. */
  through(chunk: Buffer, push: (chunk: Buffer) => void): void {
    this.#chunk = chunk;
    this.#noted = 0;
    push(chunk);
    this.#note(chunk.length);
  }

  begin(entry: TarEntry): void {
    this.#path = entry.type === 'file' ? innerPath(entry.path, 'the name') : undefined;
    this.#sink.begin(entry);
  }

  data(part: Buffer, position: number): void {
    this.#sink.data(part, position);
    if (this.#path === undefined) return; // recorded as bytes
    const start = part.byteOffset - this.#chunk.byteOffset;
    if (start > this.#noted) this.#note(start);
    this.#noted = start + part.length;
    const { offset, length } = this.#run;
    if (length > 0 && offset + length === position) {
      this.#run.length += part.length;
      return;
    }
    if (length > 0) this.#endRun();
    else this.#writer.file(this.#path);
    this.#run = { offset: position, length: part.length };
  }

  finish(): void {
    this.#endRun();
    this.#path = undefined;
    this.#sink.finish();
  }

  #note(end: number): void {
    if (end === this.#noted) return;
    this.#endRun();
    this.#writer.bytes(this.#chunk.subarray(this.#noted, end));
    this.#noted = end;
  }

  #endRun(): void {
    if (this.#run.length > 0) this.#writer.run(this.#run.offset, this.#run.length);
    this.#run = { offset: 0, length: 0 };
  }
}
