import { BLOCK_BYTES } from './tar-header.ts';

/** An entry of an archive that the engine writes: plain names of at most 100 bytes. */
export type Member = {
  name: string;
  type: 'file' | 'directory' | 'symlink';
  sizeBytes?: number;
  linkTarget?: string;
  modifiedAt: Temporal.Instant;
};

const FLAGS = { file: '0', directory: '5', symlink: '2' } as const;
const OCTAL_MAX = 0o77777777777;

/** The two zero blocks at an archive's end. */
export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES);

/** A header block in the ustar format. */
export function tarHeader({ name, type, sizeBytes = 0, linkTarget = '', modifiedAt }: Member): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  if (Buffer.byteLength(name) > 100 || Buffer.byteLength(linkTarget) > 100) throw new Error(`too long: ${name}`);
  block.write(name, 0);
  writeOctal(block, 100, 8, type === 'directory' ? 0o755 : 0o644);
  writeOctal(block, 108, 8, 0);
  writeOctal(block, 116, 8, 0);
  writeSize(block, sizeBytes);
  writeOctal(block, 136, 12, Math.max(0, Math.floor(modifiedAt.epochMilliseconds / 1000)));
  block.write('        ', 148);
  block.write(FLAGS[type], 156);
  block.write(linkTarget, 157);
  block.write('ustar\u000000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** The zero bytes behind a content of this length. */
export function tarPadding(sizeBytes: number): Buffer {
  return Buffer.alloc(-sizeBytes & (BLOCK_BYTES - 1));
}

function writeOctal(block: Buffer, at: number, length: number, value: number): void {
  block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at);
}

/** Sizes above 8 GiB do not fit into the octal digits and are written as a binary number. */
function writeSize(block: Buffer, sizeBytes: number): void {
  if (sizeBytes <= OCTAL_MAX) {
    writeOctal(block, 124, 12, sizeBytes);
    return;
  }
  block[124] = 0x80;
  block.writeBigUInt64BE(BigInt(sizeBytes), 128);
}
