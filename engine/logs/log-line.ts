import { describeAttributes } from './log-details.ts';
import { parseEntry, type Entry } from './log-entry.ts';

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
  /** 8-byte frames, or the bare text as a tty's log is sent. */
  framed: boolean;
  /** Replaces the form of each line by another one. */
  encode?: (entry: Entry) => Buffer;
  /** Bytes of the file that are read at once, for lines that `encode` makes much longer. */
  chunkBytes?: number;
}>;

const NEWLINE = 0x0a;
const HEADER_BYTES = 8;

/** Turns lines of the json-file format into the stream that the API sends. */
export class LogLines {
  readonly #select: LogSelection;
  readonly #since: string;
  readonly #until: string;
  readonly #details: string;
  /** A line after `until` was seen, so reading ends. */
  ended = false;

  constructor(select: LogSelection) {
    this.#select = select;
    this.#since = select.since === undefined ? '' : timeText(select.since);
    this.#until = select.until === undefined ? '~' : timeText(select.until);
    this.#details = select.details === undefined ? '' : `${describeAttributes(select.details)} `;
  }

  get chunkBytes(): number {
    return this.#select.chunkBytes ?? Infinity;
  }

  /** Decodes the complete lines of `data` from `from`; says where the first incomplete one starts. */
  decode(data: Buffer, from: number): { rest: number; frames: Buffer } {
    const pieces: Buffer[] = [];
    let line = from;
    while (!this.ended) {
      const newline = data.indexOf(NEWLINE, line);
      if (newline === -1) break;
      const entry = parseEntry(data.toString('utf8', line, newline));
      if (entry !== undefined && this.#isSelected(entry)) this.#addFrame(pieces, entry);
      line = newline + 1;
    }
    return { rest: line, frames: joinApart(pieces) };
  }

  #isSelected({ time, isStdout }: Entry): boolean {
    if (time < this.#since) return false;
    if (time > this.#until) {
      this.ended = true;
      return false;
    }
    return isStdout ? this.#select.stdout : this.#select.stderr;
  }

  #addFrame(pieces: Buffer[], entry: Entry): void {
    const { details, timestamps, framed, encode } = this.#select;
    if (encode !== undefined) return void pieces.push(encode(entry));
    const hasOwn = details !== undefined && Object.keys(entry.attributes).length > 0;
    const shown = hasOwn ? `${describeAttributes(entry.attributes)} ` : this.#details;
    const before = timestamps ? `${entry.time} ${shown}` : shown;
    const text = before === '' ? entry.text : Buffer.concat([Buffer.from(before), entry.text]);
    if (framed) pieces.push(frameHeader(entry.isStdout, text.length));
    pieces.push(text);
  }
}

/** Joins pieces outside of Node's pool: one small piece that waits for a slow client would keep the pool as a whole. */
export function joinApart(pieces: readonly Buffer[]): Buffer {
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  if (bytes >= Buffer.poolSize) return Buffer.concat(pieces, bytes); // never in the pool
  const joined = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const piece of pieces) at += piece.copy(joined, at);
  return joined;
}

function frameHeader(isStdout: boolean, length: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = isStdout ? 1 : 2;
  header.writeUInt32BE(length, 4);
  return header;
}

/**
 * A time to compare those of the file with: nothing is logged before the year 0 or after 9999, where the text form has a
 * sign and more digits.
 */
function timeText(time: Temporal.Instant): string {
  const text = time.toString({ fractionalSecondDigits: 9 });
  if (text.startsWith('-')) return '';
  return text.startsWith('+') ? '~' : text;
}
