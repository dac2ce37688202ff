import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { FrameReader } from '@gantry/client/frames.ts';

/** Copies a log or output stream to stdout and stderr: framed, or raw if the container has a terminal. */
export async function copyFrames(stream: Readable, tty: boolean): Promise<void> {
  if (tty) {
    await pipeline(stream, process.stdout, { end: false });
    return;
  }
  const frames = new FrameReader((name, piece) => {
    const output = process[name];
    if (output.write(piece)) return;
    stream.pause();
    output.once('drain', () => stream.resume());
  });
  frames.resume();
  await pipeline(stream, frames);
}
