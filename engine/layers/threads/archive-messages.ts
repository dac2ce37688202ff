import type { ErrorKind } from '../../lib/errors.ts';
import type { ArchiveLimits } from '../tar/tar-reader.ts';

/** Work that a worker thread does for the daemon. Streams follow as `chunk` messages. */
export type Work =
  /** Writes a stream into one file. */
  | { kind: 'receive'; file: string; limits: ArchiveLimits }
  /** Unpacks an archive; its files are written into `directory` under numbers. */
  | { kind: 'unpack'; directory: string; limits: ArchiveLimits }
  /** Extracts a layer's archive from the open file `fd`, whose digest is known. */
  | { kind: 'extract'; fd: number; digest: string; target: string; lower: readonly string[]; limits: ArchiveLimits }
  /** Packs what a writable layer has changed into one file. */
  | {
      kind: 'packLayer';
      upper: string;
      lower: readonly string[];
      file: string;
      mountPoints: readonly string[];
    };

export type Received = { digest: string; sizeBytes: number };

/** A member of an unpacked archive. */
export type Unpacked =
  | { path: string; kind: 'file'; file: string; digest: string; sizeBytes: number }
  /** A link; `target` is relative to the archive's root. */
  | { path: string; kind: 'link'; target: string };

export type Extracted = { diffId: string; sizeBytes: number };

export type Results = { receive: Received; unpack: Unpacked[]; extract: Extracted; packLayer: Received };

export type ToWorker =
  | { id: number; start: Work }
  | { id: number; chunk: Uint8Array<ArrayBuffer> }
  /** The stream has ended, or broke off with this reason. */
  | { id: number; end: { failure?: string } };

export type FromWorker =
  /** The memory of a consumed chunk. */
  | { id: number; consumed: ArrayBuffer }
  /** The number of bytes of the file read so far. */
  | { id: number; progress: number }
  | { id: number; result: Results[Work['kind']] }
  | { id: number; failure: { message: string; kind?: ErrorKind; code?: string; stack?: string } };
