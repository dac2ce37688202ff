export type LogLine = Readonly<{
  /** RFC 3339, as the engine stored it. */
  time: string;
  text: string;
  isError: boolean;
}>;

const HEADER_BYTES = 8;
const STDERR = 2;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) ?/;
/** Longer lines are cut: a browser cannot draw them. */
const MAX_LINE_LENGTH = 20_000;

/** Makes lines of a log: bare bytes of a terminal, or frames that name their stream. */
export class LogReader {
  readonly #isFramed: boolean;
  readonly #decoders = [new TextDecoder(), new TextDecoder()] as const;
  readonly #rests = ['', ''];
  #bytes: Uint8Array = new Uint8Array();

  constructor({ isFramed }: { isFramed: boolean }) {
    this.#isFramed = isFramed;
  }

  /** The lines that are complete with these bytes. */
  read(piece: Uint8Array): LogLine[] {
    if (!this.#isFramed) return this.#linesOf(0, piece);
    const lines: LogLine[] = [];
    const bytes = this.#bytes.length === 0 ? piece : joined(this.#bytes, piece);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      const end = at + HEADER_BYTES + view.getUint32(at + 4);
      if (end > bytes.length) break;
      const stream = bytes[at] === STDERR ? 1 : 0;
      for (const line of this.#linesOf(stream, bytes.subarray(at + HEADER_BYTES, end))) lines.push(line);
      at = end;
    }
    this.#bytes = bytes.slice(at);
    return lines;
  }

  /** A last line without its end. */
  end(): LogLine[] {
    return [0, 1].flatMap((stream) => (this.#rests[stream] === '' ? [] : [lineOf(this.#rests[stream]!, stream === 1)]));
  }

  #linesOf(stream: 0 | 1, bytes: Uint8Array): LogLine[] {
    const pieces = `${this.#rests[stream]}${this.#decoders[stream].decode(bytes, { stream: true })}`.split('\n');
    this.#rests[stream] = pieces.pop() ?? '';
    return pieces.map((text) => lineOf(text, stream === 1));
  }
}

function lineOf(raw: string, isError: boolean): LogLine {
  const [written = ''] = TIMESTAMP.exec(raw) ?? [];
  const text = raw.slice(written.length).replace(/\r+$/, '');
  const cut = text.length > MAX_LINE_LENGTH ? `${text.slice(0, MAX_LINE_LENGTH)}…` : text;
  return { time: written.trimEnd(), text: cut, isError };
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(one.length + other.length);
  bytes.set(one);
  bytes.set(other, one.length);
  return bytes;
}
