import { EngineError } from '../../lib/errors.ts';
import { Packet, PacketType } from '../messages/file-sync.ts';
import type { Received } from '../wire/message.ts';
import type { Session } from './session.ts';
import { StatList, type FileStat } from './stat-list.ts';
import type { Transfer } from './transfer.ts';

const PATH = '/moby.filesync.v1.FileSync/DiffCopy';
/** Files under way at a time, besides the one that is read: all together at most so long. */
const [MAX_AHEAD, MAX_AHEAD_BYTES] = [64, 4 * 1024 * 1024];
/** The bits of a mode in Go that tell a type; plain files have none. */
const TYPE_BITS = 0x8f28_0000;

/** A file or folder with its content, which must be read before the next one is asked for. */
export type SyncedFile = Readonly<{ id: number; stat: FileStat; content: AsyncIterable<Uint8Array> }>;

export type Wanted = Readonly<{
  /** The name of the folder for the client. */
  folder: string;
  /** Only these paths; links are followed. Undefined: all. */
  paths?: readonly string[];
  /** Lines of an ignore file. */
  excluded?: readonly string[];
  /** Told the bytes that came so far. */
  onBytes?: (bytes: number) => void;
  /** Files that it knows are not asked for. */
  transfer?: Transfer;
}>;

/** Whether the entry is a plain file, which has a content. */
export function isPlain(stat: FileStat): boolean {
  return (stat.mode & TYPE_BITS) === 0;
}

/**
 * The files of a client's folder, in the order of their paths. All their names come first; then their contents are asked
 * for, some ahead.
 */
export async function* syncedFiles(session: Session, wanted: Wanted, signal: AbortSignal): AsyncGenerator<SyncedFile> {
  using exchange = session.exchange(PATH, Packet, Packet, signal, headersOf(wanted));
  const packets = exchange.responses[Symbol.asyncIterator]();
  let bytes = 0;
  const next = async (): Promise<Received<typeof Packet>> => {
    const { value, done } = await packets.next();
    bytes += (value?.data?.length ?? 0) + (value?.stat?.length ?? 0);
    wanted.onBytes?.(bytes);
    if (done === true) throw new EngineError('failed', 'the client ended the transfer of its files too early');
    if (value.type === PacketType.ERROR)
      throw new EngineError('failed', `error from sender: ${Buffer.from(value.data).toString()}`);
    return value;
  };
  const stats = await statsFrom(next);
  const { transfer } = wanted;
  await transfer?.begin(stats);
  const isKnown = (id: number): boolean => transfer !== undefined && (transfer.isKnown(id) || transfer.isTakenOver(id));
  const request = async (id: number): Promise<void> => await exchange.send({ type: PacketType.REQUEST, id });
  const files = new Files(stats, next, request, isKnown);
  for (let id = 0; id < stats.length; id += 1) {
    signal.throwIfAborted(); // known files alone wait for nobody
    if (transfer?.isTakenOver(id) === true) continue;
    const stat = stats.at(id);
    const contentOf = (): AsyncIterable<Uint8Array> => (isKnown(id) ? transfer!.read(id) : files.read(id));
    yield { id, stat, content: hasContent(stat) ? contentOf() : nothing() };
  }
  await exchange.send({ type: PacketType.FIN });
  while ((await next()).type !== PacketType.FIN);
  exchange.end();
}

function hasContent(stat: FileStat): boolean {
  return isPlain(stat) && stat.linkName === '';
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // A folder, a link or a device has no content.
}

async function statsFrom(next: () => Promise<Received<typeof Packet>>): Promise<StatList> {
  const stats = new StatList();
  for (;;) {
    const { type, stat } = await next();
    if (type !== PacketType.STAT) continue;
    if (stat.length === 0) return stats;
    stats.add(stat);
  }
}

/** The part of a file that came before it was read; `isWhole`: nothing follows. */
type Arrived = { memory: Buffer | undefined; bytes: number; isWhole: boolean };

const NOTHING = new Uint8Array();

/** The contents of files. The client sends those that it was asked for in any order, and some at the same time. */
class Files {
  readonly #stats: StatList;
  readonly #next: () => Promise<Received<typeof Packet>>;
  readonly #request: (id: number) => Promise<void>;
  readonly #isKnown: (id: number) => boolean;
  readonly #arrived = new Map<number, Arrived>();
  #requested = 0;
  #bytesAhead = 0;

  constructor(
    stats: StatList,
    next: () => Promise<Received<typeof Packet>>,
    request: (id: number) => Promise<void>,
    isKnown: (id: number) => boolean,
  ) {
    this.#stats = stats;
    this.#next = next;
    this.#request = request;
    this.#isKnown = isKnown;
  }

  /** Exactly as many bytes as its stat says. */
  async *read(id: number): AsyncGenerator<Uint8Array> {
    await this.#requestAhead(id);
    const { path, size } = this.#stats.at(id);
    const file = this.#arrived.get(id)!;
    this.#bytesAhead -= size;
    if (file.bytes > 0) yield file.memory!.subarray(0, file.bytes);
    let left = size - file.bytes;
    while (!file.isWhole) {
      const piece = (await this.#takeNext(id)).subarray(0, left); // it has grown since
      left -= piece.length;
      if (piece.length > 0) yield piece;
    }
    this.#arrived.delete(id);
    if (left > 0) throw new EngineError('invalid', `${path} became shorter while it was sent`);
  }

  async #requestAhead(first: number): Promise<void> {
    for (
      this.#requested = Math.max(this.#requested, first);
      this.#requested < this.#stats.length;
      this.#requested += 1
    ) {
      if (this.#isKnown(this.#requested)) continue;
      const stat = this.#stats.at(this.#requested);
      if (!hasContent(stat)) continue;
      const isAhead = this.#requested > first;
      if (isAhead && (this.#arrived.size >= MAX_AHEAD || this.#bytesAhead + stat.size > MAX_AHEAD_BYTES)) return;
      this.#bytesAhead += stat.size;
      this.#arrived.set(this.#requested, { memory: undefined, bytes: 0, isWhole: false });
      await this.#request(this.#requested);
    }
  }

  /** Returns the bytes of the current file that came; those of others are kept. */
  async #takeNext(current: number): Promise<Uint8Array> {
    const { type, id, data } = await this.#next();
    if (type !== PacketType.DATA) return NOTHING;
    const file = this.#arrived.get(id);
    if (file === undefined || file.isWhole)
      throw new EngineError('invalid', 'the client sent a file that was not asked for');
    if (data.length === 0) file.isWhole = true;
    if (id === current) return data;
    // In memory of the file's size: small pieces would each take a hundred bytes.
    file.memory ??= Buffer.allocUnsafeSlow(this.#stats.at(id).size);
    const taken = data.subarray(0, file.memory.length - file.bytes);
    file.memory.set(taken, file.bytes);
    file.bytes += taken.length;
    return NOTHING;
  }
}

function headersOf({ folder, paths, excluded = [] }: Wanted): Record<string, string | readonly string[]> {
  return {
    'dir-name': folder,
    ...encoded('followpaths', paths ?? []),
    ...encoded('exclude-patterns', excluded),
  };
}

/** Values beyond ASCII are escaped, and marked so. */
function encoded(name: string, values: readonly string[]): Record<string, string | readonly string[]> {
  if (values.length === 0) return {};
  const isPlainText = values.every((value) => /^[\u0020-\u007e]*$/.test(value) && value === value.trim());
  if (isPlainText) return { [name]: values };
  return { [name]: values.map((value) => encodeURIComponent(value)), [`${name}-encoded`]: '1' };
}
