import { entryHeader, type NewEntry } from '../../layers/pack/tar-entry.ts';
import type { EntryType } from '../../layers/tar/tar-header.ts';
import { TAR_END, tarPadding } from '../../layers/tar/tar-write.ts';
import { isPlain, type SyncedFile } from './file-sync.ts';
import { GO_MODE } from './go-mode.ts';
import type { FileStat } from './stat-list.ts';
import type { Transfer } from './transfer.ts';

const { FOLDER, LINK, DEVICE, PIPE, SOCKET, CHARACTERS, SET_USER, SET_GROUP, STICKY } = GO_MODE;
/** Small pieces are sent together, as copies: each of them holds the memory of a whole frame. */
const CHUNK_BYTES = 256 * 1024;

/**
 * A client's files as an archive, without sockets. A chunk is valid until the next one is asked for. `transfer` is told the
 * places of contents.
 */
export async function* archiveOf(files: AsyncIterable<SyncedFile>, transfer?: Transfer): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let used = 0;
  for await (const piece of piecesOf(files, transfer)) {
    for (let at = 0; at < piece.length;) {
      const part = piece.subarray(at, at + CHUNK_BYTES - used);
      chunk.set(part, used);
      used += part.length;
      at += part.length;
      if (used < CHUNK_BYTES) continue;
      yield chunk;
      used = 0;
    }
  }
  yield chunk.subarray(0, used);
  yield TAR_END;
}

async function* piecesOf(files: AsyncIterable<SyncedFile>, transfer: Transfer | undefined): AsyncGenerator<Uint8Array> {
  let at = transfer?.behind ?? 0;
  for await (const { id, stat, content } of files) {
    const type = typeOf(stat);
    if (type === undefined) continue;
    const entry = headerOf(stat, type);
    const [header, padding] = [entryHeader(entry), tarPadding(entry.sizeBytes)];
    yield header;
    at += header.length;
    if (type === 'file') transfer?.place(id, at);
    yield* content;
    yield padding;
    at += entry.sizeBytes + padding.length;
  }
}

function typeOf({ mode, ...stat }: FileStat): EntryType | undefined {
  const has = (bit: number): boolean => (mode & bit) !== 0;
  if (has(FOLDER)) return 'directory';
  if (has(LINK)) return 'symlink';
  if (has(SOCKET)) return undefined;
  if (has(PIPE)) return 'fifo';
  if (has(DEVICE)) return has(CHARACTERS) ? 'charDevice' : 'blockDevice';
  return stat.linkName === '' ? 'file' : 'link';
}

function headerOf(stat: FileStat, type: EntryType): NewEntry {
  const { path, mode, uid, gid, size, modified, linkName, deviceMajor, deviceMinor, attributes } = stat;
  return {
    path: latin1(type === 'directory' ? `${path}/` : path),
    type,
    mode: permissions(mode),
    uid,
    gid,
    sizeBytes: type === 'file' && isPlain(stat) ? size : 0,
    mtimeSeconds: Number(modified / 1_000_000_000n),
    linkPath: latin1(linkName),
    major: deviceMajor,
    minor: deviceMinor,
    xattrs: [...attributes].map(([name, value]) => [latin1(name), Buffer.from(value)]),
  };
}

function permissions(mode: number): number {
  const special = [SET_USER, SET_GROUP, STICKY].reduce(
    (sum, bit, index) => sum + ((mode & bit) === 0 ? 0 : 0o4000 >> index),
    0,
  );
  return (mode & 0o777) | special;
}

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}
