import { createReadStream } from 'node:fs';

import { tarHeader, tarPadding } from '../../layers/tar/tar-write.ts';

export const EPOCH = new Temporal.Instant(0n);

/** A small file of an archive. */
export function* textFile(name: string, content: string, modifiedAt: Temporal.Instant = EPOCH): Generator<Buffer> {
  const bytes = Buffer.from(content);
  yield tarHeader({ name, type: 'file', sizeBytes: bytes.length, modifiedAt });
  yield bytes;
  yield tarPadding(bytes.length);
}

/** The content of a file as it is. */
export function bytesOf(path: string): AsyncIterable<Buffer> {
  return createReadStream(path);
}
