import { imageRoot } from '../../builder/steps/scratch-root.ts';
import type { Engine } from '../../engine.ts';
import type { Image } from '../../images/store.ts';
import { BytesMessage } from '../messages/session.ts';
import type { Session } from '../session/session.ts';

export const FILE_SEND = '/moby.filesync.v1.FileSend/DiffCopy';

/** Sends the files of an image to the client as an archive. `index`: the place of the output among those of the build. */
export async function exportTar(
  engine: Engine,
  image: Image,
  { session, index, signal }: Readonly<{ session: Session; index: number; signal: AbortSignal }>,
): Promise<void> {
  await using root = await imageRoot(engine, image.id);
  await using view = await engine.copies.open({ root: root.path, mounts: [], readOnly: 'everything' });
  using exchange = session.exchange(FILE_SEND, BytesMessage, BytesMessage, signal, exporterHeader(index));
  await view.pack(undefined, async (data) => await exchange.send({ data }), signal);
  exchange.end();
  await Array.fromAsync(exchange.responses);
}

export function exporterHeader(index: number): Record<string, string> {
  return { 'buildkit-attachable-exporter-id': String(index) };
}
