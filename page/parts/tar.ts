const BLOCK_BYTES = 512;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A file below the place of an archive. */
export type TarFile = Readonly<{ path: string; body: Blob; mode?: number }>;

/** Packs files. Their paths are in extended headers, which have no limit of length. */
export function packTar(files: readonly TarFile[]): Blob {
  const parts: BlobPart[] = [];
  const add = (body: Blob | Uint8Array<ArrayBuffer>, size: number): void => {
    parts.push(body, new Uint8Array((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES));
  };
  for (const { path, body, mode = 0o644 } of files) {
    const extended = encoder.encode(record('path', path) + record('size', String(body.size)));
    parts.push(header({ name: 'path', type: 'x', size: extended.length, mode: 0o644 }));
    add(extended, extended.length);
    parts.push(header({ name: 'file', type: '0', size: body.size, mode }));
    add(body, body.size);
  }
  parts.push(new Uint8Array(2 * BLOCK_BYTES));
  return new Blob(parts, { type: 'application/x-tar' });
}

/** The content of the first plain file of an archive; undefined: it has none. */
export function firstFile(archive: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | undefined {
  let extendedSize: number | undefined;
  for (let at = 0; at + BLOCK_BYTES <= archive.length && archive[at] !== 0;) {
    const type = String.fromCharCode(archive[at + 156]!);
    const isExtended = type === 'x';
    const size = isExtended ? sizeAt(archive, at) : (extendedSize ?? sizeAt(archive, at));
    const body = archive.subarray(at + BLOCK_BYTES, at + BLOCK_BYTES + size);
    if (type === '0' || type === '\0') return body;
    const given = isExtended ? /^\d+ size=(\d+)$/m.exec(decoder.decode(body))?.[1] : undefined;
    extendedSize = given === undefined ? undefined : Number(given);
    at += BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
  return undefined;
}

/** `20 path=x\n`, with a length that counts its own digits. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = encoder.encode(rest).length;
  let length = bytes + 1;
  while (String(length).length + bytes !== length) length = String(length).length + bytes;
  return `${length}${rest}`;
}

type Header = Readonly<{ name: string; type: string; size: number; mode: number }>;

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, '0')}\0`;
}

function header({ name, type, size, mode }: Header): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK_BYTES);
  const write = (at: number, text: string): void => block.set(encoder.encode(text), at);
  const now = Math.floor(Date.now() / 1000);
  write(0, name);
  write(100, octal(mode, 7));
  write(108, octal(0, 7));
  write(116, octal(0, 7));
  write(124, octal(Math.min(size, 0o77777777777), 11)); // a larger one is in the extended header
  write(136, octal(now, 11));
  write(148, ' '.repeat(8));
  write(156, type);
  write(257, 'ustar\x0000');
  const sum = block.reduce((total, byte) => total + byte, 0);
  write(148, `${sum.toString(8).padStart(6, '0')}\0 `);
  return block;
}

function sizeAt(archive: Uint8Array, at: number): number {
  return Number.parseInt(decoder.decode(archive.subarray(at + 124, at + 136)), 8);
}
