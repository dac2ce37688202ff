import { StatusResponse } from '../messages/control.ts';
import type { Sent } from '../wire/message.ts';

type Status = Sent<typeof StatusResponse>;
type VertexState = NonNullable<Status['vertexes']>[number];

/** Bytes of the lines of one build; the steps themselves may take as many again. */
const MAX_TEXT_BYTES = 1024 * 1024;
const MAX_BYTES = 2 * MAX_TEXT_BYTES;
const LENGTH_BYTES = 4;

/** The progress of one build as it is stored: steps, lines, and ends of transfers. */
export class RecordedLog {
  readonly #steps = new Map<string, VertexState>();
  #warnings = 0;
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isClipped = false;

  readonly add = (status: Status): void => {
    for (const vertex of status.vertexes ?? []) this.#steps.set(vertex.digest!, vertex);
    this.#warnings += status.warnings?.length ?? 0;
    const isPassing = status.statuses?.every(({ completed }) => completed === undefined) ?? false;
    if (!isPassing) this.#write(status);
  };

  get steps(): { total: number; cached: number; completed: number } {
    const all = [...this.#steps.values()];
    return {
      total: all.length,
      cached: all.filter(({ cached }) => cached === true).length,
      completed: all.filter(({ completed }) => completed !== undefined).length,
    };
  }

  get warnings(): number {
    return this.#warnings;
  }

  /** The bytes that `statusesIn` reads. */
  bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }

  #write(status: Status): void {
    const [line] = status.logs ?? [];
    if (line !== undefined && this.#bytes >= MAX_TEXT_BYTES) {
      if (this.#isClipped) return;
      this.#isClipped = true;
      this.#append({ logs: [{ ...line, text: Buffer.from('\n[output clipped, log limit 1MiB reached]\n') }] });
    } else {
      this.#append(status);
    }
  }

  #append(status: Status): void {
    const encoded = StatusResponse.encode(status);
    if (this.#bytes + encoded.length > MAX_BYTES) return;
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(encoded.length);
    this.#pieces.push(length, encoded);
    this.#bytes += encoded.length + LENGTH_BYTES;
  }
}

/** The statuses of a stored log, in their order; those of a file that is cut off up to its end. */
export function* statusesIn(bytes: Buffer): Generator<Sent<typeof StatusResponse>> {
  for (let at = 0; at + LENGTH_BYTES <= bytes.length;) {
    const end = at + LENGTH_BYTES + bytes.readUInt32LE(at);
    if (end > bytes.length) return;
    yield StatusResponse.decode(bytes.subarray(at + LENGTH_BYTES, end));
    at = end;
  }
}
