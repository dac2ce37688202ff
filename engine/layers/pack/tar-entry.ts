import type { BytePath } from '../../host/files/openat.ts';
import { BLOCK_BYTES, TYPE_FLAGS, type EntryType, type Segment } from '../tar/tar-header.ts';

/** An entry to write: names of any length and any bytes, owners and sizes of any height. */
export type NewEntry = Readonly<{
  path: BytePath;
  type: EntryType;
  mode: number;
  uid: number;
  gid: number;
  /** Size of the file, holes included; 0 for everything else. */
  sizeBytes: number;
  mtimeSeconds: number;
  linkPath?: BytePath;
  major?: number;
  minor?: number;
  xattrs?: readonly (readonly [name: BytePath, value: Buffer])[];
  /** The parts of a sparse file that are stored. */
  segments?: readonly Segment[];
}>;
const OCTAL_7 = 0o7777777;
const OCTAL_11 = 0o77777777777;

/**
 * The header of an entry as Go's writer of the pax format has it: ustar, and an extended header for what does not fit.
 * For a sparse file the map that precedes its content (GNU's form 1.0) is part of it.
 */
export function entryHeader(entry: NewEntry): Buffer {
  const map = entry.segments === undefined ? undefined : sparseMap(entry.segments);
  const stored = map === undefined ? entry.sizeBytes : storedBytes(entry.segments!, map);
  const records = paxRecords(entry, stored);
  const header = ustarBlock(entry, stored);
  if (records.length === 0) return header;
  return Buffer.concat([extendedHeader(entry, records), header, map ?? EMPTY]);
}

const EMPTY = Buffer.alloc(0);

function storedBytes(segments: readonly Segment[], map: Buffer): number {
  return map.length + segments.reduce((sum, { bytes }) => sum + bytes, 0);
}

function sparseMap(segments: readonly Segment[]): Buffer {
  const numbers = [segments.length, ...segments.flatMap(({ offset, bytes }) => [offset, bytes])];
  return padBlock(Buffer.from(`${numbers.join('\n')}\n`));
}

function paxRecords(entry: NewEntry, stored: number): Buffer {
  const { path, linkPath = '', uid, gid, sizeBytes, mtimeSeconds, xattrs = [] } = entry;
  const records: Buffer[] = [];
  const add = (key: string, value: Buffer | string): void => void records.push(paxRecord(key, value));
  if (entry.segments !== undefined) {
    add('GNU.sparse.major', '1');
    add('GNU.sparse.minor', '0');
    add('GNU.sparse.name', latin1(path));
    add('GNU.sparse.realsize', String(sizeBytes));
  } else if (!fits(path)) {
    add('path', latin1(path));
  }
  if (stored > OCTAL_11) add('size', String(stored));
  if (!fits(linkPath)) add('linkpath', latin1(linkPath));
  if (uid > OCTAL_7) add('uid', String(uid));
  if (gid > OCTAL_7) add('gid', String(gid));
  if (mtimeSeconds < 0 || mtimeSeconds > OCTAL_11) add('mtime', String(mtimeSeconds));
  for (const [name, value] of xattrs) add(`SCHILY.xattr.${name}`, value);
  return records.length === 0 ? EMPTY : Buffer.concat(records);
}

/** A length counts itself. */
function paxRecord(key: string, value: Buffer | string): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`, 'latin1'), Buffer.from(value as string), Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function extendedHeader(entry: NewEntry, records: Buffer): Buffer {
  const name = `PaxHeaders.0/${lastName(entry.path)}`.slice(0, 100);
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(ascii(name), 0, 'latin1');
  writeNumbers(block, { mode: 0, uid: 0, gid: 0, sizeBytes: records.length, mtimeSeconds: 0 });
  return Buffer.concat([finished(block, 'x'), padBlock(records)]);
}

function ustarBlock(entry: NewEntry, sizeBytes: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const { path, linkPath = '', type, major = 0, minor = 0 } = entry;
  const name = entry.segments === undefined ? path : `GNUSparseFile.0/${lastName(path)}`;
  block.write(fits(name) ? name : ascii(name).slice(0, 100), 0, 'latin1');
  block.write(fits(linkPath) ? linkPath : ascii(linkPath).slice(0, 100), 157, 'latin1');
  writeNumbers(block, { ...entry, sizeBytes });
  if (type === 'charDevice' || type === 'blockDevice') {
    octal(block, 329, 8, major);
    octal(block, 337, 8, minor);
  }
  return finished(block, TYPE_FLAGS[type]);
}

type Numbers = Pick<NewEntry, 'mode' | 'uid' | 'gid' | 'sizeBytes' | 'mtimeSeconds'>;

/** A value that is too large is in the extended header. */
function writeNumbers(block: Buffer, { mode, uid, gid, sizeBytes, mtimeSeconds }: Numbers): void {
  octal(block, 100, 8, mode);
  octal(block, 108, 8, uid > OCTAL_7 ? 0 : uid);
  octal(block, 116, 8, gid > OCTAL_7 ? 0 : gid);
  octal(block, 124, 12, sizeBytes > OCTAL_11 ? 0 : sizeBytes);
  octal(block, 136, 12, mtimeSeconds < 0 || mtimeSeconds > OCTAL_11 ? 0 : mtimeSeconds);
}

function finished(block: Buffer, flag: string): Buffer {
  block.write(flag, 156, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  block.fill(0x20, 148, 156);
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at += 1) sum += block[at]!; // a third of the time of for-of
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

function octal(block: Buffer, at: number, length: number, value: number): void {
  block.write(value.toString(8).padStart(length - 1, '0'), at, 'latin1');
}

/** Into a field of a ustar header. */
function fits(name: BytePath): boolean {
  // oxlint-disable-next-line no-control-regex -- every byte but those above ASCII
  return name.length <= 100 && /^[\u0000-\u007f]*$/.test(name);
}

function ascii(name: BytePath): string {
  // oxlint-disable-next-line no-control-regex -- every byte but those above ASCII
  return name.replaceAll(/[^\u0001-\u007f]/g, '');
}

function lastName(path: BytePath): string {
  return path.split('/').findLast((part) => part !== '') ?? '';
}

function latin1(text: BytePath): Buffer {
  return Buffer.from(text, 'latin1');
}

function padBlock(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & (BLOCK_BYTES - 1))]);
}
