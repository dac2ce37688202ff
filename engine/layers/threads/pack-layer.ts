import { closeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

import { holdAt } from '../../host/files/held-files.ts';
import { ALL, LayerRules } from '../pack/layer-rules.ts';
import { pack } from '../pack/pack.ts';
import type { Received, Work } from './archive-messages.ts';
import { FileWriter } from './file-writer.ts';

const CHUNK_BYTES = 256 * 1024;

/** Writes the changes of a writable layer as an archive into a new file. `check` is called for each chunk, and may throw. */
export async function packLayer(work: Extract<Work, { kind: 'packLayer' }>, check: () => void): Promise<Received> {
  using held = new DisposableStack();
  const root = held.adopt(holdAt(-1, Buffer.from(work.upper).toString('latin1')), closeSync);
  const writer = held.use(new FileWriter(work.file));
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES); // written before the next chunk is asked for
  const rules = work.mountPoints === 'none' ? ALL : new LayerRules(work.lower, work.mountPoints);
  for (const chunk of pack({ held: root, name: undefined }, () => buffer, { rules })) {
    writer.write(chunk, writer.sizeBytes);
    await setImmediate(); // yields to other work of this thread
    check();
  }
  return { digest: writer.digest(), sizeBytes: writer.sizeBytes };
}
