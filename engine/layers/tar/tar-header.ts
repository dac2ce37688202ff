import type { BytePath, Timespec } from '../../host/files/openat.ts';
import { EngineError } from '../../lib/errors.ts';

export const BLOCK_BYTES = 512;

/** The type of a tar entry. The content of `skip` is ignored. */
export type EntryType = 'file' | 'link' | 'symlink' | 'charDevice' | 'blockDevice' | 'directory' | 'fifo';

/** The type flag of an entry that is written. */
export const TYPE_FLAGS: Readonly<Record<EntryType, string>> = {
  file: '0',
  link: '1',
  symlink: '2',
  charDevice: '3',
  blockDevice: '4',
  directory: '5',
  fifo: '6',
};

const TYPES_OF_MODES: Readonly<Record<number, EntryType>> = {
  0o100000: 'file',
  0o040000: 'directory',
  0o120000: 'symlink',
  0o020000: 'charDevice',
  0o060000: 'blockDevice',
  0o010000: 'fifo',
};

/** The type of a file by its mode; undefined for a socket, which no archive has. */
export function entryTypeOf(mode: number): EntryType | undefined {
  return TYPES_OF_MODES[mode & 0o170000];
}

export type Segment = { offset: number; bytes: number };

/** One member of an archive, with the values of its extended headers. */
export type TarEntry = {
  path: BytePath;
  type: EntryType;
  mode: number;
  /** As it is written: some writers put the bits of the type in. */
  fullMode: number;
  uid: number;
  gid: number;
  /** The size of the file, holes included. */
  sizeBytes: number;
  mtime: Timespec;
  linkPath: BytePath;
  major: number;
  minor: number;
  xattrs: readonly (readonly [name: string, value: Buffer])[];
};

/** The fields of one header block, unchanged. */
export type RawHeader = {
  name: BytePath;
  flag: string;
  mode: number;
  uid: number;
  gid: number;
  storedBytes: number;
  mtime: Timespec;
  linkName: BytePath;
  major: number;
  minor: number;
  sparse: { segments: Segment[]; more: boolean; realBytes: number } | undefined;
};

/** The error for an archive that is damaged, hostile, or not an archive. */
export function badArchive(why: string, cause?: unknown): EngineError {
  return new EngineError('invalid', `invalid archive: ${why}`, { cause });
}

export function isZeroBlock(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** Reads a header block: ustar, GNU or the oldest format. */
export function parseHeader(block: Buffer): RawHeader {
  if (!hasRightChecksum(block)) throw badArchive('a header has a wrong checksum');
  const magic = block.toString('latin1', 257, 263);
  const isGnu = magic === 'ustar ';
  const prefix = magic === 'ustar\0' ? text(block, 345, 155) : '';
  const name = text(block, 0, 100);
  const flag = String.fromCharCode(block[156]!);
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    flag,
    mode: count(block, 100, 8, 'mode'),
    uid: count(block, 108, 8, 'owner'),
    gid: count(block, 116, 8, 'group'),
    storedBytes: count(block, 124, 12, 'size'),
    mtime: { seconds: number(block, 136, 12, 'time'), nanoseconds: 0 },
    linkName: text(block, 157, 100),
    major: magic.startsWith('ustar') ? count(block, 329, 8, 'device') : 0,
    minor: magic.startsWith('ustar') ? count(block, 337, 8, 'device') : 0,
    sparse:
      isGnu && flag === 'S'
        ? { segments: segmentsOf(block, 386, 4), more: block[482] !== 0, realBytes: count(block, 483, 12, 'size') }
        : undefined,
  };
}

/** A block that continues the map of an old GNU sparse file. */
export function parseSparseBlock(block: Buffer): { segments: Segment[]; more: boolean } {
  return { segments: segmentsOf(block, 0, 21), more: block[504] !== 0 };
}

function segmentsOf(block: Buffer, start: number, most: number): Segment[] {
  const segments: Segment[] = [];
  for (let at = start; at < start + most * 24 && block[at] !== 0; at += 24) {
    segments.push({ offset: count(block, at, 12, 'sparse map'), bytes: count(block, at + 12, 12, 'sparse map') });
  }
  return segments;
}

function hasRightChecksum(block: Buffer): boolean {
  let unsigned = 8 * 0x20;
  let signed = unsigned;
  for (let index = 0; index < BLOCK_BYTES; index += 1) {
    if (index === 148) index = 156; // the checksum field counts as blanks
    const byte = block[index]!;
    unsigned += byte;
    signed += byte < 128 ? byte : byte - 256; // some old programs sum signed characters
  }
  const given = octal(block, 148, 8);
  return given === unsigned || given === signed;
}

function text(block: Buffer, start: number, length: number): BytePath {
  const end = block.subarray(start, start + length).indexOf(0);
  return block.toString('latin1', start, end < 0 ? start + length : start + end);
}

function count(block: Buffer, start: number, length: number, what: string): number {
  const value = number(block, start, length, what);
  if (value < 0) throw badArchive(`a header has a negative ${what}`);
  return value;
}

/** Octal digits, or, with the first bit set, a binary number. */
function number(block: Buffer, start: number, length: number, what: string): number {
  const first = block[start]!;
  const value = first >= 0x80 ? binary(block, start, length) : octal(block, start, length);
  if (value === undefined || !Number.isSafeInteger(value)) throw badArchive(`a header has an invalid ${what}`);
  return value;
}

function binary(block: Buffer, start: number, length: number): number {
  const isNegative = (block[start]! & 0x40) !== 0;
  let value = BigInt(block[start]! & 0x7f);
  for (const byte of block.subarray(start + 1, start + length)) value = (value << 8n) | BigInt(byte);
  return Number(isNegative ? value - (1n << BigInt(length * 8 - 1)) : value);
}

function octal(block: Buffer, start: number, length: number): number | undefined {
  let at = start;
  const end = start + length;
  while (at < end && block[at] === 0x20) at += 1;
  let value = 0;
  for (; at < end && block[at]! >= 0x30 && block[at]! <= 0x37; at += 1) value = value * 8 + block[at]! - 0x30;
  return at === end || block[at] === 0 || block[at] === 0x20 ? value : undefined;
}
