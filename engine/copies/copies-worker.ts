import { closeSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

import { cloneMount, ThreadMounts } from '../host/mounts/mount-tree.ts';
import { changesOf, type Change } from '../layers/pack/changes.ts';
import { pack } from '../layers/pack/pack.ts';
import { TarReader } from '../layers/tar/tar-reader.ts';
import { ArrivingStream } from '../layers/threads/arriving-stream.ts';
import { decompressed } from '../layers/threads/compression.ts';
import { OutgoingChunks } from '../layers/threads/outgoing-chunks.ts';
import { Slices } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import { listInSteps } from './list.ts';
import type { Failure, FromWorker, PlaceOptions, Results, ToWorker, Work, WorkerData } from './messages.ts';
import { Placer } from './place.ts';
import { transferFromArchive } from './transfer/from-archive.ts';
import { findSourcesInSteps } from './transfer/sources.ts';
import { CopyCanceled, makeFolder, transfer, type Pause } from './transfer/transfer.ts';
import { viewTree } from './transfer/view-tree.ts';
import { View } from './view.ts';

/** The disk is the limit; these only stop endless archives. */
const PLACE_LIMITS = { bytes: 2 ** 46, entries: 2 ** 28 };

// The body of the worker thread. Several copies go on at a time, which yield to each other at each chunk.
const port = parentPort!;
const mounts = new ThreadMounts((workerData as WorkerData).hidden);
const views = new Map<number, View>();
const arriving = new Map<number, ArrivingStream>();
const outgoing = new Map<number, OutgoingChunks>();
/** Work under way, and that whose result is no longer wanted. */
const [running, stopped] = [new Set<number>(), new Set<number>()];
let lastView = 0;

port.on('message', (message: ToWorker) => {
  if ('leave' in message) {
    mounts[Symbol.dispose]();
    port.close();
    return;
  }
  const { id } = message;
  // oxlint-disable-next-line typescript/no-floating-promises -- what fails here ends the thread, and fails what it was at
  if ('start' in message) void handleWork(id, message.start);
  else if ('chunks' in message) arriving.get(id)?.push(message.chunks);
  else if ('end' in message) arriving.get(id)?.end(message.end.failure);
  else if ('taken' in message) outgoing.get(id)?.giveBack(message.taken);
  else {
    if (running.has(id)) stopped.add(id);
    outgoing.get(id)?.stop();
  }
});

async function handleWork(id: number, work: Work): Promise<void> {
  running.add(id);
  // Before the first wait, because chunks, or answers to them, may be the next messages.
  if (work.kind === 'place') arriving.set(id, new ArrivingStream((consumed) => tell({ id, consumed })));
  if (work.kind === 'pack') outgoing.set(id, new OutgoingChunks((output) => tell({ id, output }, [output.buffer])));
  try {
    tell({ id, result: await resultOf(id, work) });
  } catch (error) {
    tell({ id, failure: describe(error) });
  } finally {
    running.delete(id);
    stopped.delete(id);
    arriving.delete(id);
    outgoing.get(id)?.[Symbol.dispose]();
    outgoing.delete(id);
  }
}

async function pause(id: number): Promise<void> {
  await setImmediate();
  if (stopped.has(id)) throw new CopyCanceled();
}

async function resultOf(id: number, work: Work): Promise<Results[Work['kind']]> {
  switch (work.kind) {
    case 'changes':
      return inJson(mounts.inProcess(() => changesOf(work.upper, work.lower)));
    case 'borrow':
      return mounts.inNamespaceOf(work.pid, () => cloneMount(work.path));
    case 'open':
      lastView += 1;
      views.set(lastView, new View(mounts, work.view));
      return lastView;
    case 'close':
      views.get(work.view)?.[Symbol.dispose]();
      views.delete(work.view);
      return undefined;
    case 'stat': {
      const { held, stat } = viewOf(work.view).look(work.path);
      closeSync(held);
      return stat;
    }
    case 'list':
      return await runInPauses(listInSteps(viewOf(work.view), work.path), async () => await pause(id));
    case 'findSources': {
      using view = new View(mounts, { root: work.root, mounts: [], readOnly: 'everything' });
      return await runInPauses(findSourcesInSteps(viewTree(view), work.wanted), async () => await pause(id));
    }
    case 'transfer': {
      const target = viewOf(work.view);
      using source = new View(mounts, { root: work.transfer.from, mounts: [], readOnly: 'everything' });
      await transfer(source, target, work.transfer, async () => await pause(id));
      return undefined;
    }
    case 'transferFromArchive':
      await transferFromArchive(work.archived, viewOf(work.view), work.transfer, async () => await pause(id));
      return undefined;
    case 'makeFolder':
      makeFolder(viewOf(work.view), work.path, work.owner);
      return undefined;
    case 'pack':
      await sendPacked(viewOf(work.view), work.path, outgoing.get(id)!);
      return undefined;
    case 'place':
      await placeArchive(viewOf(work.view), work.options, arriving.get(id)!, async () => await pause(id));
      return undefined;
  }
}

/** Like `runInSlices`, with pauses that end it when its result is no longer wanted. */
async function runInPauses<T>(work: Generator<void, T>, pause: Pause): Promise<T> {
  let slice = new Slices();
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (!slice.isOver) continue;
    await pause();
    slice = new Slices();
  }
}

async function sendPacked(view: View, path: string | undefined, chunks: OutgoingChunks): Promise<void> {
  const found = path === undefined ? undefined : view.look(path);
  try {
    const name = found === undefined ? undefined : Buffer.from(found.stat.name).toString('latin1');
    const how = { owners: view.owners?.toInside, attribute: view.owners?.attributeToInside };
    for (const chunk of pack({ held: found?.held ?? view.root, name }, () => chunks.fresh(), how))
      await chunks.send(chunk);
  } finally {
    if (found !== undefined) closeSync(found.held);
  }
}

async function placeArchive(view: View, options: PlaceOptions, archive: ArrivingStream, pause: Pause): Promise<void> {
  using placer = new Placer(view, options);
  const reader = new TarReader(placer, { ...PLACE_LIMITS, idMap: view.bounds });
  for await (const chunk of decompressed(archive)) {
    reader.push(chunk);
    await pause();
  }
  reader.end();
  placer.complete();
}

/** Written here: the thread of the daemon would stand still for as long as a list of many takes. */
function inJson(changes: readonly Change[]): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(changes.length === 0 ? 'null' : JSON.stringify(changes)); // null as in dockerd
}

function viewOf(id: number): View {
  const view = views.get(id);
  if (view === undefined) throw new Error(`unknown view ${id}`);
  return view;
}

function tell(message: FromWorker, transferred: ArrayBuffer[] = []): void {
  port.postMessage(message, transferred);
}

/** Errors lose their class and their code between threads. */
function describe(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, stack = '' } = error;
  const code = 'code' in error ? { code: String(error.code) } : {};
  const syscall = 'syscall' in error ? { syscall: String(error.syscall) } : {};
  return { message, stack, ...code, ...syscall, ...(error instanceof EngineError && { kind: error.kind }) };
}
