import type { IdMap } from '../host/users/id-map.ts';
import type { ErrorKind } from '../lib/errors.ts';
import type { Archived, ArchivedTransfer } from './transfer/from-archive.ts';
import type { SourceFound, SourcesWanted } from './transfer/sources.ts';
import type { Transfer } from './transfer/transfer.ts';

/** A mount of the container, as the view shows it. */
export type ViewMount = Readonly<{ source: string; destination: string; recursive: boolean; writable: boolean }>;

/** A thread's view of a container: its root with the user's mounts. */
export type ViewRequest = Readonly<{
  /** Where its root is mounted, for this process. */
  root: string;
  mounts: readonly ViewMount[];
  /** The map of a container that runs with one: its root has owners of the host. */
  idMap?: IdMap | undefined;
  /** The ids that files may get, if they are not those of `idMap`. */
  bounds?: IdMap | undefined;
  /** The read-only part: nothing, everything outside of mounts, or everything. Mount points are created in any case. */
  readOnly: 'nothing' | 'root' | 'everything';
}>;

export type PathStat = Readonly<{
  /** The last part of the path, as Go's filepath.Base has it. */
  name: string;
  sizeBytes: number;
  /** The kernel's mode with its type bits. */
  mode: number;
  mtimeNs: bigint;
  /** The final target of a link, seen from inside; empty for anything but a link. */
  linkTarget: string;
}>;

/** An entry of a folder. */
export type FolderEntry = Readonly<{
  name: string;
  /** The kernel's mode with its type bits. */
  mode: number;
  sizeBytes: number;
  mtimeNs: bigint;
  uid: number;
  gid: number;
  /** The text of a link; empty for anything else. */
  target: string;
}>;
/** `isComplete` is false where a folder has more entries than are listed. */
export type Folder = Readonly<{ path: string; entries: readonly FolderEntry[]; isComplete: boolean }>;

export type PlaceOptions = Readonly<{
  path: string;
  /** No folder is replaced by something else, and nothing else by a folder. */
  keepsKinds: boolean;
  /** The owner of all files; without it, the archive's owners. */
  owner?: Readonly<{ uid: number; gid: number }>;
}>;

export type Work =
  /** The changes of a writable layer against the layers below. */
  | { kind: 'changes'; upper: string; lower: readonly string[] }
  /** The mount that another process sees at this path, as a descriptor. */
  | { kind: 'borrow'; pid: number; path: string }
  | { kind: 'open'; view: ViewRequest }
  | { kind: 'close'; view: number }
  | { kind: 'stat'; view: number; path: string }
  /** The entries of a folder. */
  | { kind: 'list'; view: number; path: string }
  /** A path of a view as an archive; the whole root without its own entry where there is no path. */
  | { kind: 'pack'; view: number; path: string | undefined }
  /** The files of the sources of a COPY in a root. */
  | { kind: 'findSources'; root: string; wanted: SourcesWanted }
  /** Files of another root into a view. */
  | { kind: 'transfer'; view: number; transfer: Transfer }
  /** Files of an archive into a view. */
  | { kind: 'transferFromArchive'; view: number; archived: Archived; transfer: ArchivedTransfer }
  /** A folder of a view, with its parents. */
  | { kind: 'makeFolder'; view: number; path: string; owner: { uid: number; gid: number } }
  /** An archive, which follows as chunks, into a folder of a view. */
  | { kind: 'place'; view: number; options: PlaceOptions };

export type Results = {
  /** As JSON. */
  changes: Uint8Array<ArrayBuffer>;
  borrow: number;
  open: number;
  close: undefined;
  stat: PathStat;
  list: Folder;
  findSources: SourceFound[];
  transfer: undefined;
  transferFromArchive: undefined;
  makeFolder: undefined;
  pack: undefined;
  place: undefined;
};

export type ToWorker =
  /** Nothing more comes: the thread ends. */
  | { leave: true }
  | { id: number; start: Work }
  /** Bytes of the archive that is placed. */
  | { id: number; chunks: Uint8Array<ArrayBuffer>[] }
  /** It has ended, or broke off with this reason. */
  | { id: number; end: { failure?: string } }
  /** A chunk of a packed archive was taken; its memory comes back. */
  | { id: number; taken: ArrayBuffer }
  /** The result is no longer wanted. */
  | { id: number; stop: true };

export type Failure = { message: string; kind?: ErrorKind; code?: string; syscall?: string; stack?: string };

export type FromWorker =
  | { id: number; output: Uint8Array<ArrayBuffer> }
  /** So many bytes of the archive. */
  | { id: number; consumed: number }
  | { id: number; result: Results[Work['kind']] }
  | { id: number; failure: Failure };

export type WorkerData = {
  /** Mounts below this folder are not kept by the threads. */
  hidden: string;
};
