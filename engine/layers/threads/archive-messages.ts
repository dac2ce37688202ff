import type { ErrorKind } from '../../lib/errors.ts';
import type { ArchiveLimits } from '../tar/tar-reader.ts';

/** Work that a worker thread does for the daemon. Streams follow as `chunk` messages. */
export type Work =
  /** Writes a stream into one file. */
  | { kind: 'receive'; file: string; limits: ArchiveLimits }
  /** Unpacks an archive; its files are written into `directory` under numbers. */
  | { kind: 'unpack'; directory: string; limits: ArchiveLimits }
  /**
   * Extracts a layer's archive from the open file `fd`, whose digest is known; for a plain one a skeleton is written,
   * if it and the files give the archive again. The stream that follows names the folders of the layers below.
   */
  | {
      kind: 'extract';
      fd: number;
      digest: string;
      target: string;
      skeleton: string;
      limits: ArchiveLimits;
    }
  /** Packs the changes of a writable layer into one file. */
  | {
      kind: 'packLayer';
      upper: string;
      lower: readonly string[];
      file: string;
      mountPoints: readonly string[] | 'none';
    }
  /** Describes a writable layer that becomes a layer as it is, and writes its skeleton into a new file. */
  | { kind: 'describeLayer'; upper: string; skeleton: string; limits: ArchiveLimits }
  /**
   * Writes the context of a build, which follows, as a plain archive into a new file, or behind so many bytes of an existing
   * one; `entries` messages have its entries.
   */
  | { kind: 'spoolContext'; file: string; behind: number; limits: ArchiveLimits }
  /** Extracts such a file into an empty folder, but the entries whose bits are set in `without`, in the order of `entries`. */
  | {
      kind: 'extractContext';
      file: string;
      directory: string;
      without: Uint8Array<ArrayBuffer> | undefined;
      limits: ArchiveLimits;
    }
  /** Sends the plain archive of a layer, as `output` messages. */
  | { kind: 'read'; source: ArchiveSource }
  /** Writes the compressed archive of a layer into a new file; tells how many bytes it has, as it grows. */
  | { kind: 'compress'; source: ArchiveSource; file: string; compression: LayerCompression };

/** Without a level a fast one. */
export type LayerCompression = Readonly<{ kind: 'gzip' | 'zstd'; level?: number }>;

/** The source of a layer's archive: a file, compressed or not, or a skeleton with the extracted files. */
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

/** An entry of a context: its type, and its checksum as docker's builder computes it. */
export type ContextEntry = {
  path: string;
  type: 'folder' | 'file' | 'link' | 'other';
  sum: string;
  /** The target of a link; the path of the file that a hard link names. */
  target: string;
  /** The place of the file in the plain archive, unless it is stored in pieces. */
  content?: { offset: number; bytes: number };
};

export type Results = {
  receive: Received;
  unpack: Unpacked[];
  extract: Extracted;
  read: undefined;
  compress: Received;
  packLayer: Received;
  describeLayer: Extracted;
  spoolContext: undefined;
  extractContext: undefined;
};

export type ToWorker =
  | { id: number; start: Work }
  | { id: number; chunks: Uint8Array<ArrayBuffer>[] }
  /** The stream has ended, or broke off with this reason. */
  | { id: number; end: { failure?: string } }
  /** A group of entries was taken. */
  | { id: number; listed: true }
  /** An output was taken; its memory comes back. */
  | { id: number; taken: ArrayBuffer }
  /** The result is no longer wanted. */
  | { id: number; stop: true };

export type FromWorker =
  /** So many bytes of the stream. */
  | { id: number; consumed: number }
  /** The number of bytes of the file read, or written, so far. */
  | { id: number; progress: number }
  | { id: number; output: Uint8Array<ArrayBuffer> }
  | { id: number; entries: ContextEntry[] }
  | { id: number; result: Results[Work['kind']] }
  | { id: number; failure: { message: string; kind?: ErrorKind; code?: string; syscall?: string; stack?: string } };
