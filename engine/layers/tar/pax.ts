import type { BytePath, Timespec } from '../../host/files/openat.ts';
import { badArchive, type Segment } from './tar-header.ts';

/** The values of pax records for an entry; undefined if not given. */
export type PaxValues = {
  path?: BytePath;
  linkPath?: BytePath;
  sizeBytes?: number;
  uid?: number;
  gid?: number;
  mtime?: Timespec;
  xattrs: [name: string, value: Buffer][];
  sparse?: {
    path?: BytePath;
    realBytes?: number;
    /** Version 1.0: the map precedes the content. */
    mapInContent: boolean;
    numbers: number[];
  };
};

const XATTR = 'SCHILY.xattr.';

/** Reads the records of an extended header, `length key=value\n` each, on top of `values`. */
export function readPax(content: Buffer, values: PaxValues): void {
  for (let at = 0; at < content.length;) {
    // Some writers pad with zero bytes up to the block.
    if (content[at] === 0) return;
    const blank = content.indexOf(0x20, at);
    const length = blank < 0 || blank - at > 10 ? NaN : decimal(content.toString('latin1', at, blank));
    const end = at + length;
    if (!(end > blank + 1) || end > content.length || content[end - 1] !== 0x0a)
      throw badArchive('a pax record is truncated');
    const equals = content.indexOf(0x3d, blank + 1);
    if (equals < 0 || equals >= end) throw badArchive('a pax record has no value');
    setValue(values, content.toString('latin1', blank + 1, equals), content.subarray(equals + 1, end - 1));
    at = end;
  }
}

function setValue(values: PaxValues, key: string, value: Buffer): void {
  const word = value.toString('latin1');
  if (key.startsWith(XATTR)) {
    values.xattrs.push([key.slice(XATTR.length), Buffer.from(value)]);
    return;
  }
  switch (key) {
    case 'path':
      values.path = nameOf(word);
      return;
    case 'linkpath':
      values.linkPath = nameOf(word);
      return;
    case 'size':
      values.sizeBytes = decimal(word);
      return;
    case 'uid':
      values.uid = decimal(word);
      return;
    case 'gid':
      values.gid = decimal(word);
      return;
    case 'mtime':
      values.mtime = timeOf(word);
      return;
    default:
      if (key.startsWith('GNU.sparse.')) setSparse(values, key.slice('GNU.sparse.'.length), word);
  }
}

function setSparse(values: PaxValues, key: string, word: string): void {
  values.sparse ??= { mapInContent: false, numbers: [] };
  const { sparse } = values;
  if (key === 'name') sparse.path = nameOf(word);
  else if (key === 'size' || key === 'realsize') sparse.realBytes = decimal(word);
  else if (key === 'major') sparse.mapInContent = decimal(word) >= 1;
  else if (key === 'offset' || key === 'numbytes') sparse.numbers.push(decimal(word));
  else if (key === 'map') sparse.numbers = word === '' ? [] : word.split(',').map(decimal);
}

/** The map of a sparse file from its numbers, which alternate between offset and length. */
export function segmentsFrom(numbers: readonly number[]): Segment[] {
  if (numbers.length % 2 !== 0) throw badArchive('a sparse map is incomplete');
  const segments: Segment[] = [];
  for (let at = 0; at < numbers.length; at += 2) segments.push({ offset: numbers[at]!, bytes: numbers[at + 1]! });
  return segments;
}

export function decimal(word: string): number {
  const value = /^\d{1,16}$/.test(word) ? Number(word) : NaN;
  if (!Number.isSafeInteger(value)) throw badArchive(`an extended header has an invalid number: ${word.slice(0, 40)}`);
  return value;
}

function nameOf(word: string): BytePath {
  if (word.includes('\0')) throw badArchive('an extended header has a name with a zero byte');
  return word;
}

/** Seconds with a fraction of any length, possibly before 1970. */
function timeOf(word: string): Timespec {
  const parts = /^(-?)(\d{1,15})(?:\.(\d*))?$/.exec(word);
  if (parts === null) throw badArchive(`an extended header has an invalid time: ${word.slice(0, 40)}`);
  const seconds = Number(parts[2]);
  const nanoseconds = Number((parts[3] ?? '').slice(0, 9).padEnd(9, '0'));
  if (parts[1] === '') return { seconds, nanoseconds };
  return nanoseconds === 0
    ? { seconds: -seconds, nanoseconds: 0 }
    : { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds };
}
