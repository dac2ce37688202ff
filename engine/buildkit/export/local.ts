import { constants, type Dirent, type Stats } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

import { imageRoot } from '../../builder/steps/scratch-root.ts';
import type { Engine } from '../../engine.ts';
import type { Image } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { Packet, PacketType, Stat } from '../messages/file-sync.ts';
import { goMode } from '../session/go-mode.ts';
import type { Session } from '../session/session.ts';
import type { Sent } from '../wire/message.ts';
import { exporterHeader, FILE_SEND } from './tar.ts';

const CHUNK_BYTES = 64 * 1024;

type Send = (packet: Sent<typeof Packet>) => Promise<void>;

/** Sends the files of an image into a folder of the client, which asks for those that it wants. */
export async function exportLocal(
  engine: Engine,
  image: Image,
  { session, index, signal }: Readonly<{ session: Session; index: number; signal: AbortSignal }>,
): Promise<void> {
  await using root = await imageRoot(engine, image.id);
  using exchange = session.exchange(FILE_SEND, Packet, Packet, signal, exporterHeader(index));
  const files = await sendStats(root.path, exchange.send);
  for await (const { type, id, data } of exchange.responses) {
    if (type === PacketType.ERROR)
      throw new EngineError('failed', `error from receiver: ${Buffer.from(data).toString()}`);
    if (type === PacketType.REQUEST) await sendFile(root.path, id, files, exchange.send);
    if (type !== PacketType.FIN) continue;
    await exchange.send({ type: PacketType.FIN });
    exchange.end();
  }
}

/** The stats of all files, folder by folder in the order of the names. Returns the paths of plain files by their ids. */
async function sendStats(root: string, send: Send): Promise<ReadonlyMap<number, string>> {
  const files = new Map<number, string>();
  let id = 0;
  const walk = async (folder: string): Promise<void> => {
    for (const entry of (await readdir(join(root, folder), { withFileTypes: true })).toSorted(byName)) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      const stats = await lstat(join(root, path));
      if (stats.isSocket()) continue;
      if (stats.isFile()) files.set(id, path);
      await send({ type: PacketType.STAT, stat: Stat.encode(await statOf(root, path, stats)) });
      id += 1;
      if (stats.isDirectory()) await walk(path);
    }
  };
  await walk('');
  await send({ type: PacketType.STAT });
  return files;
}

async function statOf(root: string, path: string, stats: Stats): Promise<Sent<typeof Stat>> {
  return {
    path,
    mode: goMode(stats),
    uid: stats.uid,
    gid: stats.gid,
    size: stats.isFile() ? stats.size : 0,
    modified: BigInt(Math.round(stats.mtimeMs)) * 1_000_000n,
    ...(stats.isSymbolicLink() && { linkName: await readlink(join(root, path)) }),
  };
}

/** The folders of its path are real ones: nobody changes the image. */
async function sendFile(root: string, id: number, files: ReadonlyMap<number, string>, send: Send): Promise<void> {
  const path = files.get(id);
  if (path === undefined) throw new EngineError('invalid', `the client asked for a file that there is not: ${id}`);
  await using file = await open(join(root, path), constants.O_RDONLY | constants.O_NOFOLLOW);
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES);
    await send({ type: PacketType.DATA, id, data: buffer.subarray(0, bytesRead) });
    if (bytesRead === 0) return;
  }
}

function byName(a: Dirent, b: Dirent): number {
  return Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));
}
