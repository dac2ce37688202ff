import type { BytePath } from '../../host/files/openat.ts';
import { describeBeyond, type IdMap } from '../../host/users/id-map.ts';
import { append } from '../../lib/append.ts';
import { EngineError } from '../../lib/errors.ts';
import { quotePath } from './entry-names.ts';
import { readPax, segmentsFrom, type PaxValues } from './pax.ts';
import { checkSegments, refuseLongMap, SegmentCursor, SparseMap } from './sparse.ts';
import {
  badArchive,
  BLOCK_BYTES,
  isZeroBlock,
  parseHeader,
  parseSparseBlock,
  type EntryType,
  type RawHeader,
  type Segment,
  type TarEntry,
} from './tar-header.ts';

/** The consumer of the entries: `begin`, any number of `data` with the position in the file, `finish`. */
export type TarSink = {
  begin(entry: TarEntry): void;
  data(chunk: Buffer, position: number): void;
  finish(): void;
};

export type ArchiveLimits = Readonly<{
  /** The size of the uncompressed archive. */
  bytes: number;
  entries: number;
  /** Entries with owners beyond it are refused. */
  idMap?: IdMap | undefined;
}>;

/** Far above every real image, and low enough that a few megabytes of gzip cannot fill the disk. */
export const DEFAULT_LIMITS: ArchiveLimits = { bytes: 64 * 2 ** 30, entries: 4_000_000 };

const EXTENDED_HEADER_BYTES = 1024 * 1024;

const types: ReadonlyMap<string, EntryType> = new Map(
  Object.entries({
    '\0': 'file',
    '0': 'file',
    '7': 'file',
    S: 'file',
    '1': 'link',
    '2': 'symlink',
    '3': 'charDevice',
    '4': 'blockDevice',
    '5': 'directory',
    D: 'directory',
    '6': 'fifo',
  }),
);

type Phase = 'header' | 'sparseBlocks' | 'extended' | 'sparseMap' | 'data' | 'padding' | 'end';

/** Parses an archive from chunks of any size. Only headers are buffered. */
export class TarReader {
  readonly #sink: TarSink;
  readonly #limits: ArchiveLimits;
  readonly #block = Buffer.alloc(BLOCK_BYTES);
  #blockBytes = 0;
  #phase: Phase = 'header';
  #totalBytes = 0;
  #entries = 0;
  #zeroBlocks = 0;

  #header: RawHeader | undefined;
  #pax: PaxValues | undefined;
  #global: PaxValues = { xattrs: [] };
  #longName: BytePath | undefined;
  #longLink: BytePath | undefined;
  #extended: Buffer[] = [];
  #map = new SparseMap();

  /** The remaining stored bytes of the current entry, and the padding behind them. */
  #left = 0;
  #padding = 0;
  #segments: Segment[] = [];
  #cursor = new SegmentCursor([]);
  #isOpen = false;
  #takesData = false;

  constructor(sink: TarSink, limits: ArchiveLimits = DEFAULT_LIMITS) {
    this.#sink = sink;
    this.#limits = limits;
  }

  /** Whether the mark of its end has come: what follows it is ignored. */
  get isOver(): boolean {
    return this.#phase === 'end';
  }

  push(chunk: Buffer): void {
    this.#totalBytes += chunk.length;
    if (this.#totalBytes > this.#limits.bytes) {
      throw badArchive(`it has more bytes than the limit of ${this.#limits.bytes}`);
    }
    let rest = chunk;
    while (rest.length > 0 && this.#phase !== 'end') rest = this.#take(rest);
  }

  /** Ends the input; throws for an archive that stops in the middle. */
  end(): void {
    if (this.#phase === 'end') return;
    // Many writers omit the end mark, so the input may end between two entries.
    const isBetween = this.#phase === 'header' && this.#blockBytes === 0 && !this.#hasPending();
    if (!isBetween) throw badArchive('it ends in the middle of an entry');
  }

  #hasPending(): boolean {
    return this.#pax !== undefined || this.#longName !== undefined || this.#longLink !== undefined;
  }

  /** Consumes the beginning of `chunk` and returns the rest. */
  #take(chunk: Buffer): Buffer {
    switch (this.#phase) {
      case 'header':
      case 'sparseBlocks':
      case 'sparseMap':
        return this.#takeBlock(chunk);
      case 'extended':
      case 'data': {
        const piece = chunk.subarray(0, this.#left);
        this.#left -= piece.length;
        if (this.#phase === 'extended') this.#extended.push(Buffer.from(piece));
        else if (this.#takesData) this.#cursor.place(piece, (part, position) => this.#sink.data(part, position));
        if (this.#left === 0) this.#phase = 'padding';
        if (this.#left === 0 && this.#padding === 0) this.#close();
        return chunk.subarray(piece.length);
      }
      case 'padding': {
        const skipped = Math.min(this.#padding, chunk.length);
        this.#padding -= skipped;
        if (this.#padding === 0) this.#close();
        return chunk.subarray(skipped);
      }
      case 'end':
        return chunk.subarray(chunk.length);
    }
  }

  #takeBlock(chunk: Buffer): Buffer {
    if (this.#blockBytes === 0 && chunk.length >= BLOCK_BYTES) {
      this.#onBlock(chunk.subarray(0, BLOCK_BYTES));
      return chunk.subarray(BLOCK_BYTES);
    }
    const taken = chunk.copy(this.#block, this.#blockBytes, 0, BLOCK_BYTES - this.#blockBytes);
    this.#blockBytes += taken;
    if (this.#blockBytes === BLOCK_BYTES) {
      this.#blockBytes = 0;
      this.#onBlock(this.#block);
    }
    return chunk.subarray(taken);
  }

  #onBlock(block: Buffer): void {
    if (this.#phase === 'sparseBlocks') this.#onSparseBlock(block);
    else if (this.#phase === 'sparseMap') this.#onSparseMap(block);
    else this.#onHeader(block);
  }

  #onHeader(block: Buffer): void {
    if (isZeroBlock(block)) {
      if (this.#hasPending()) throw badArchive('it ends in the middle of an entry');
      this.#zeroBlocks += 1;
      if (this.#zeroBlocks === 2) this.#phase = 'end';
      return;
    }
    if (this.#zeroBlocks > 0) throw badArchive('it continues after half of an end mark');
    const header = parseHeader(block);
    this.#header = header;
    this.#entries += 1;
    if (this.#entries > this.#limits.entries) {
      throw badArchive(`it has more entries than the limit of ${this.#limits.entries}`);
    }
    if ('xgLK'.includes(header.flag)) {
      if (header.storedBytes > EXTENDED_HEADER_BYTES) {
        throw badArchive(`an extended header has ${header.storedBytes} bytes; the limit is ${EXTENDED_HEADER_BYTES}`);
      }
      this.#expect('extended', header.storedBytes);
    } else if (header.sparse?.more === true) {
      this.#phase = 'sparseBlocks';
    } else {
      this.#open();
    }
  }

  #onSparseBlock(block: Buffer): void {
    const { segments, more } = parseSparseBlock(block);
    const all = this.#header!.sparse!.segments;
    append(all, segments);
    refuseLongMap(all.length);
    if (!more) this.#open();
  }

  #onSparseMap(block: Buffer): void {
    if (this.#left < BLOCK_BYTES) throw badArchive('a sparse map is truncated');
    this.#left -= BLOCK_BYTES;
    const segments = this.#map.push(block);
    if (segments === undefined) return;
    this.#segments = segments;
    this.#begin(this.#left);
  }

  #expect(phase: 'extended' | 'data', bytes: number): void {
    this.#left = bytes;
    this.#padding = -bytes & (BLOCK_BYTES - 1);
    this.#phase = phase;
    if (bytes === 0) this.#close();
  }

  /** The header is complete, with its extensions. */
  #open(): void {
    const header = this.#header!;
    const pax = this.#pax;
    const storedBytes = pax?.sizeBytes ?? this.#global.sizeBytes ?? header.storedBytes;
    if (pax?.sparse?.mapInContent === true) {
      this.#left = storedBytes;
      this.#map = new SparseMap();
      this.#phase = 'sparseMap';
      return;
    }
    this.#segments = header.sparse?.segments ?? (pax?.sparse ? segmentsFrom(pax.sparse.numbers) : []);
    if (header.sparse === undefined && pax?.sparse === undefined) {
      this.#segments = [{ offset: 0, bytes: storedBytes }];
    }
    this.#begin(storedBytes);
  }

  #begin(storedBytes: number): void {
    const header = this.#header!;
    const entry = this.#entry(storedBytes);
    this.#cursor = new SegmentCursor(this.#segments);
    if (entry !== undefined) {
      this.#refuseBeyondMap(entry);
      if (entry.type === 'file') checkSegments(this.#segments, storedBytes, entry.sizeBytes);
      this.#sink.begin(entry);
      this.#isOpen = true;
      this.#takesData = entry.type === 'file';
    }
    this.#pax = undefined;
    this.#longName = undefined;
    this.#longLink = undefined;
    // Links, nodes and folders may have a size, but never content.
    this.#expect('data', '123456'.includes(header.flag) ? 0 : storedBytes);
  }

  /** The kernel would show such files as those of nobody, and let nobody change them. */
  #refuseBeyondMap({ path, uid, gid }: TarEntry): void {
    const why = describeBeyond(this.#limits.idMap, { uid, gid });
    if (why !== undefined) throw new EngineError('failed', `${quotePath(path)} has ${why}`);
  }

  #entry(storedBytes: number): TarEntry | undefined {
    const header = this.#header!;
    const pax = { ...this.#global, ...this.#pax };
    if (header.flag === 'V') return undefined; // the name of the volume
    let type = types.get(header.flag);
    if (type === undefined) throw badArchive(`an entry has the unknown type ${JSON.stringify(header.flag)}`);
    const path = pax.sparse?.path ?? pax.path ?? this.#longName ?? header.name;
    if (type === 'file' && path.endsWith('/')) type = 'directory'; // the oldest format's way to write folders
    return {
      path,
      type,
      mode: header.mode & 0o7777,
      fullMode: header.mode,
      uid: idOf(pax.uid ?? header.uid),
      gid: idOf(pax.gid ?? header.gid),
      sizeBytes: type === 'file' ? (header.sparse?.realBytes ?? pax.sparse?.realBytes ?? storedBytes) : 0,
      mtime: pax.mtime ?? header.mtime,
      linkPath: pax.linkPath ?? this.#longLink ?? header.linkName,
      major: header.major,
      minor: header.minor,
      xattrs: [...this.#global.xattrs, ...(this.#pax?.xattrs ?? [])],
    };
  }

  /** The entry, or the extended header, is complete. */
  #close(): void {
    const header = this.#header!;
    this.#phase = 'header';
    if ('xgLK'.includes(header.flag)) this.#onExtended(header.flag, Buffer.concat(this.#extended));
    else if (this.#isOpen) this.#sink.finish();
    this.#extended = [];
    this.#isOpen = false;
    this.#takesData = false;
  }

  #onExtended(flag: string, content: Buffer): void {
    if (flag === 'x') readPax(content, (this.#pax = { xattrs: [] }));
    else if (flag === 'g') readPax(content, this.#global);
    else {
      const end = content.indexOf(0);
      const name = content.toString('latin1', 0, end < 0 ? content.length : end);
      if (flag === 'L') this.#longName = name;
      else this.#longLink = name;
    }
  }
}

function idOf(value: number): number {
  if (value >= 0xffffffff) throw badArchive(`an entry has the invalid owner ${value}`);
  return value;
}
