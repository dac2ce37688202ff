import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';

import { imageRoot } from '../../builder/steps/scratch-root.ts';
import type { Engine } from '../../engine.ts';
import { runInSlices } from '../../lib/concurrency/slices.ts';
import { sortInSteps } from '../../lib/concurrency/sort-in-steps.ts';
import { EngineError } from '../../lib/errors.ts';
import { Packet, PacketType, Stat } from '../messages/file-sync.ts';
import { GO_MODE, goMode } from '../session/go-mode.ts';
import type { Session } from '../session/session.ts';
import type { Sent } from '../wire/message.ts';
import { PathList } from './path-list.ts';
import { exporterHeader, FILE_SEND } from './tar.ts';
import type { Tree } from './trees.ts';

const CHUNK_BYTES = 64 * 1024;

type Send = (packet: Sent<typeof Packet>) => Promise<void>;

/** The folder of the output that gets the files, and the time of all of them if the client wants one. */
type Above = Readonly<{ folder: string; epoch: Temporal.Instant | undefined }>;

type To = Readonly<{ session: Session; index: number; signal: AbortSignal }>;

/** Sends the files of results into a folder of the client, which asks for those that it wants. */
export async function exportLocal(engine: Engine, trees: readonly Tree[], to: To): Promise<void> {
  for (const tree of trees) await sendTree(engine, tree, to);
}

async function sendTree(engine: Engine, { built, folder }: Tree, { session, index, signal }: To): Promise<void> {
  await using root = await imageRoot(engine, built.image.id);
  using exchange = session.exchange(FILE_SEND, Packet, Packet, signal, exporterHeader(index));
  const files = await sendStats(root.path, { folder, epoch: built.epoch }, exchange.send);
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
async function sendStats(root: string, to: Above, send: Send): Promise<PathList> {
  const files = new PathList();
  const modified = to.epoch?.epochNanoseconds ?? 0n;
  if (to.folder !== '') {
    files.add('');
    await send({
      type: PacketType.STAT,
      stat: Stat.encode({ path: to.folder, mode: GO_MODE.FOLDER + 0o755, modified }),
    });
  }
  /** The first names of files that have several, by their inodes. */
  const linked = new Map<number, string>();
  const walk = async (folder: string): Promise<void> => {
    const names = await readdir(placeOf(root, folder), { encoding: 'latin1' });
    for (const name of await runInSlices(sortInSteps(names))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const stats = await lstat(placeOf(root, path));
      if (stats.isSocket()) continue;
      files.add(stats.isFile() ? path : '');
      const stat = await statOf(root, to, path, stats);
      const linkName = stats.isFile() && stats.nlink > 1 ? linked.getOrInsert(stats.ino, stat.path) : stat.path;
      const sent = linkName === stat.path ? stat : { ...stat, size: 0, linkName };
      await send({ type: PacketType.STAT, stat: Stat.encode(sent) });
      if (stats.isDirectory()) await walk(path);
    }
  };
  await walk('');
  await send({ type: PacketType.STAT });
  return files;
}

/** A path of bytes below the root. */
function placeOf(root: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, 'latin1')]);
}

async function statOf(
  root: string,
  { folder, epoch }: Above,
  path: string,
  stats: Stats,
): Promise<Sent<typeof Stat> & { path: string }> {
  return {
    path: `${folder}${folder === '' ? '' : '/'}${Buffer.from(path, 'latin1').toString()}`,
    mode: goMode(stats),
    uid: stats.uid,
    gid: stats.gid,
    size: stats.isFile() ? stats.size : 0,
    modified: epoch?.epochNanoseconds ?? BigInt(Math.round(stats.mtimeMs)) * 1_000_000n,
    ...(stats.isSymbolicLink() && { linkName: await readlink(placeOf(root, path)) }),
  };
}

/** The folders of its path are real ones: nobody changes the image. */
async function sendFile(root: string, id: number, files: PathList, send: Send): Promise<void> {
  const path = files.at(id);
  if (path === '') throw new EngineError('invalid', `the client asked for a file that there is not: ${id}`);
  await using file = await open(placeOf(root, path), constants.O_RDONLY | constants.O_NOFOLLOW);
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES);
    await send({ type: PacketType.DATA, id, data: buffer.subarray(0, bytesRead) });
    if (bytesRead === 0) return;
  }
}
