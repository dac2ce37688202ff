/** Frames of HTTP/2 as bytes, also those that no library writes. */
const HEAD_BYTES = 9;

export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RESET: 3,
  SETTINGS: 4,
  PUSH: 5,
  PING: 6,
  WINDOW: 8,
  CONTINUATION: 9,
} as const;
export const FLAG = { END_STREAM: 1, ACK: 1, END_HEADERS: 4 } as const;
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A block of header fields, none of them indexed. */
export function fields(values: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(values.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([length(bytes.length), bytes]);
}

/** An integer with a prefix of seven bits. */
function length(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const bytes = [127];
  let left = value - 127;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Buffer.from([...bytes, left]);
}
