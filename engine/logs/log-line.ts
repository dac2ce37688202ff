import { describeAttributes } from './log-details.ts';
import { parseEntry } from './log-entry.ts';
import { comparable, compareTime, isTime, TIMESTAMP_BYTES, writeTimestamp } from './log-time.ts';

/** The selection and the form of a log's lines for a reader. */
export type LogSelection = Readonly<{
  stdout: boolean;
  stderr: boolean;
  /** Lines before this are left out. */
  since?: Temporal.Instant;
  /** Lines after this are left out, and reading ends with the first of them. */
  until?: Temporal.Instant;
  timestamps: boolean;
  /** Shown before each line: the attributes of lines that have none of their own. Undefined: none are shown. */
  details: Readonly<Record<string, string>> | undefined;
  /** The JSON text of the attributes that usually stand in each line. */
  attributes?: string;
  /** 8-byte frames, or the bare text as a tty's log is sent. */
  framed: boolean;
}>;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const NEWLINE = 0x0a;
const HEADER_BYTES = 8;
/** An empty one, with all its names and a time of seconds. */
const SHORTEST_LINE = 58;

const LOG = Buffer.from('{"log":"');
const STREAM = Buffer.from(',"stream":"std');
const OUT = Buffer.from('out"');
const ERR = Buffer.from('err"');
const TIME = Buffer.from(',"time":"');
const END = Buffer.from('}\n');

/** The byte behind a backslash to the byte that is meant; `u` is not in the table. */
const escapes = new Uint8Array(128);
for (const [letter, meant] of Object.entries({
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
})) {
  escapes[letter.charCodeAt(0)] = meant.charCodeAt(0);
}

/**
 * Turns lines of the json-file format into what the API sends.
 *
 * The usual line (log, stream, the container's attributes, time, in this order) is decoded in one pass over its bytes:
 * JSON.parse per line costs five times as much. Everything else (`raw`, another order) takes the way through JSON.parse.
 */
export class LogLines {
  readonly #select: LogSelection;
  readonly #since: Buffer | undefined;
  readonly #until: Buffer | undefined;
  readonly #details: Buffer;
  readonly #attributes: Buffer;
  #out: Buffer = Buffer.alloc(0);
  #used = 0;
  /** A line after `until` was seen, so reading ends. */
  ended = false;

  constructor(select: LogSelection) {
    this.#select = select;
    this.#since = select.since && comparable(select.since);
    this.#until = select.until && comparable(select.until);
    const { attributes = '' } = select;
    this.#attributes = Buffer.from(attributes === '' ? '' : `,"attrs":${attributes}`);
    this.#details = Buffer.from(select.details === undefined ? '' : `${describeAttributes(select.details)} `);
  }

  /** Decodes the complete lines of `data` from `from`; says where the first incomplete one starts. */
  decode(data: Buffer, from: number): { rest: number; frames: Buffer } {
    this.#out = Buffer.allocUnsafe(this.#bound(data.length - from));
    this.#used = 0;
    let line = from;
    while (line < data.length && !this.ended) {
      const next = this.#usual(data, line);
      if (next !== -1) {
        line = next;
        continue;
      }
      const newline = data.indexOf(NEWLINE, line);
      if (newline === -1) break;
      this.#unusual(data.toString('utf8', line, newline), data.length - newline);
      line = newline + 1;
    }
    return { rest: line, frames: this.#out.subarray(0, this.#used) };
  }

  /** A usual line is never longer than in the file, but for its details: names and punctuation take more than the rest. */
  #bound(bytes: number): number {
    return bytes + Math.ceil(bytes / SHORTEST_LINE) * this.#details.length;
  }

  /** Decodes a line of the usual form; -1 for another form or an incomplete line, and then without a valid output. */
  #usual(data: Buffer, line: number): number {
    if (!matches(data, line, LOG)) return -1;
    const { framed, timestamps } = this.#select;
    const out = this.#out;
    const start = this.#used;
    const text = start + (framed ? HEADER_BYTES : 0);
    let to = text + (timestamps ? TIMESTAMP_BYTES : 0);
    if (this.#details.length > 0) to += this.#details.copy(out, to);
    let at = line + LOG.length;
    const end = data.length;
    for (;;) {
      if (at >= end) return -1;
      const byte = data[at]!;
      if (byte === QUOTE) break;
      if (byte === NEWLINE) return -1;
      if (byte !== BACKSLASH) {
        out[to++] = byte;
        at += 1;
        continue;
      }
      const plain = escapes[data[at + 1]! & 0x7f]!;
      if (plain !== 0) {
        out[to++] = plain;
        at += 2;
        continue;
      }
      const unit = hexUnit(data, at + 2);
      // Half of a surrogate pair: JSON.parse knows what to do with it.
      if (unit === -1 || (unit >= 0xd800 && unit < 0xe000)) return -1;
      to = writeUtf8(out, to, unit);
      at += 6;
    }
    at += 1;
    if (!matches(data, at, STREAM)) return -1;
    at += STREAM.length;
    const isStdout = matches(data, at, OUT);
    if (!isStdout && !matches(data, at, ERR)) return -1;
    at += OUT.length;
    if (matches(data, at, this.#attributes)) at += this.#attributes.length;
    if (!matches(data, at, TIME)) return -1;
    at += TIME.length;
    const time = at;
    while (at < end && data[at] !== QUOTE && data[at] !== NEWLINE) at += 1;
    if (!isTime(data, time, at) || !matches(data, at + 1, END)) return -1;
    if (!this.#wanted(data, time, at - 1, isStdout)) return at + 3;
    if (timestamps) writeTimestamp(out, text, data, time, at - 1);
    if (framed) writeHeader(out, start, isStdout, to - text);
    this.#used = to;
    return at + 3;
  }

  #wanted(data: Buffer, time: number, timeEnd: number, isStdout: boolean): boolean {
    if (this.#since !== undefined && compareTime(data, time, timeEnd, this.#since) < 0) return false;
    if (this.#until !== undefined && compareTime(data, time, timeEnd, this.#until) > 0) {
      this.ended = true;
      return false;
    }
    return isStdout ? this.#select.stdout : this.#select.stderr;
  }

  #unusual(line: string, remainingBytes: number): void {
    const entry = parseEntry(line);
    if (entry === undefined) return;
    const time = Buffer.from(entry.time.toString({ fractionalSecondDigits: 9 }));
    if (!this.#wanted(time, 0, time.length - 1, entry.isStdout)) return;
    const own = this.#select.details !== undefined && Object.keys(entry.attributes).length > 0;
    const details = own ? `${describeAttributes(entry.attributes)} ` : this.#details.toString();
    const timestamp = this.#select.timestamps ? `${time.toString()} ` : '';
    const body = Buffer.concat([Buffer.from(timestamp + details), entry.text]);
    this.#append(body, entry.isStdout, remainingBytes);
  }

  /** Leaves as much room as the lines that are still to come need. */
  #append(body: Buffer, isStdout: boolean, remainingBytes: number): void {
    const header = this.#select.framed ? HEADER_BYTES : 0;
    const needed = this.#used + header + body.length + this.#bound(remainingBytes);
    if (needed > this.#out.length) {
      const larger = Buffer.allocUnsafe(2 * needed);
      this.#out.copy(larger, 0, 0, this.#used);
      this.#out = larger;
    }
    if (header > 0) writeHeader(this.#out, this.#used, isStdout, body.length);
    body.copy(this.#out, this.#used + header);
    this.#used += header + body.length;
  }
}

function matches(data: Buffer, at: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i += 1) {
    if (data[at + i] !== expected[i]) return false;
  }
  return true;
}

function hexUnit(data: Buffer, at: number): number {
  let unit = 0;
  for (let i = at; i < at + 4; i += 1) {
    const byte = data[i] ?? 0;
    const letter = byte | 0x20;
    if (byte >= 0x30 && byte <= 0x39) unit = unit * 16 + byte - 0x30;
    else if (letter >= 0x61 && letter <= 0x66) unit = unit * 16 + letter - 0x57;
    else return -1;
  }
  return unit;
}

function writeUtf8(out: Buffer, at: number, unit: number): number {
  let to = at;
  if (unit < 0x80) {
    out[to++] = unit;
  } else if (unit < 0x800) {
    out[to++] = 0xc0 | (unit >> 6);
    out[to++] = 0x80 | (unit & 0x3f);
  } else {
    out[to++] = 0xe0 | (unit >> 12);
    out[to++] = 0x80 | ((unit >> 6) & 0x3f);
    out[to++] = 0x80 | (unit & 0x3f);
  }
  return to;
}

function writeHeader(out: Buffer, at: number, isStdout: boolean, length: number): void {
  out[at] = isStdout ? 1 : 2;
  out[at + 1] = 0;
  out[at + 2] = 0;
  out[at + 3] = 0;
  out[at + 4] = length >>> 24;
  out[at + 5] = length >>> 16;
  out[at + 6] = length >>> 8;
  out[at + 7] = length;
}
