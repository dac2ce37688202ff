import type { ErrorKind } from '../../lib/errors.ts';
import type { ArchiveLimits } from '../tar/tar-reader.ts';

/** Work that a worker thread does for the daemon. Streams follow as `chunk` messages. */
export type Work =
  /** Writes a stream into one file. */
  | { kind: 'receive'; file: string; limits: ArchiveLimits }
  /** Unpacks an archive; its files are written into `directory` under numbers. */
  | { kind: 'unpack'; directory: string; limits: ArchiveLimits }
  /**
   * Extracts a layer's archive from the open file `fd`, whose digest is known; of a plain one a skeleton is written, if
   * the archive can be made of it and the files again.
   */
  | {
      kind: 'extract';
      fd: number;
      digest: string;
      target: string;
      lower: readonly string[];
      skeleton: string;
      limits: ArchiveLimits;
    }
  /** Packs what a writable layer has changed into one file. */
  | {
      kind: 'packLayer';
      upper: string;
      lower: readonly string[];
      file: string;
      mountPoints: readonly string[] | 'none';
    }
  /** Writes the context of a build, which follows, as a plain archive into a new file, and tells what is in it. */
  | { kind: 'spoolContext'; file: string; limits: ArchiveLimits }
  /** Extracts such a file into an empty folder. */
  | { kind: 'extractContext'; file: string; directory: string; limits: ArchiveLimits }
  /** Sends the plain archive of a layer, as `output` messages. */
  | { kind: 'read'; source: ArchiveSource }
  /** Writes the archive of a layer into a new file with gzip; tells how many bytes it has, as it grows. */
  | { kind: 'compress'; source: ArchiveSource; file: string };

/** Where the archive of a layer is: a file, compressed or not, or what a skeleton and the extracted files give. */
export type ArchiveSource =
  | { kind: 'whole'; file: string }
  | { kind: 'skeleton'; file: string; folder: string; digest: string };

export type Received = { digest: string; sizeBytes: number };

/** A member of an unpacked archive. */
export type Unpacked =
  | { path: string; kind: 'file'; file: string; digest: string; sizeBytes: number }
  /** A link; `target` is relative to the archive's root. */
  | { path: string; kind: 'link'; target: string };

export type Extracted = {
  diffId: string;
  /** The size of the files. */
  sizeBytes: number;
  /** The size of the plain archive. */
  archiveBytes: number;
  /** Whether there is a skeleton that gives the archive again. */
  hasSkeleton: boolean;
};

/** An entry of a context: what it is, and its checksum as docker's builder computes it. */
export type ContextEntry = {
  path: string;
  type: 'folder' | 'file' | 'link' | 'other';
  sum: string;
  /** Of a link; of a file that is a further name of another, that one. */
  target: string;
  /** Where in the plain archive the file is, unless it is stored in pieces. */
  content?: { offset: number; bytes: number };
};

export type Results = {
  receive: Received;
  unpack: Unpacked[];
  extract: Extracted;
  read: undefined;
  compress: Received;
  packLayer: Received;
  spoolContext: ContextEntry[];
  extractContext: undefined;
};

export type ToWorker =
  | { id: number; start: Work }
  | { id: number; chunk: Uint8Array<ArrayBuffer> }
  /** The stream has ended, or broke off with this reason. */
  | { id: number; end: { failure?: string } }
  /** An output was taken; its memory comes back. */
  | { id: number; taken: ArrayBuffer }
  /** Nobody wants the output any longer. */
  | { id: number; stop: true };

export type FromWorker =
  /** The memory of a consumed chunk. */
  | { id: number; consumed: ArrayBuffer }
  /** The number of bytes of the file read, or written, so far. */
  | { id: number; progress: number }
  | { id: number; output: Uint8Array<ArrayBuffer> }
  | { id: number; result: Results[Work['kind']] }
  | { id: number; failure: { message: string; kind?: ErrorKind; code?: string; stack?: string } };
