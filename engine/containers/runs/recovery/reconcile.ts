import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../../../config/daemon-config.ts';
import type { Engine } from '../../../engine.ts';
import { settlesWithin, type Clock } from '../../../lib/clock.ts';
import type { Task } from '../../../lib/concurrency/background.ts';
import { EngineError } from '../../../lib/errors.ts';
import { namesIn } from '../../../lib/folders.ts';
import { bufferPath } from '../../../logs/delivery/buffer-path.ts';
import { tellUndelivered } from '../../../logs/delivery/deliveries.ts';
import { reconcile as reconcileNetworks } from '../../../networks/endpoints/reconcile.ts';
import { ForeignShim } from '../../../runtime/shim/handshake.ts';
import { Shim } from '../../../runtime/shim/shim.ts';
import { removeVolumesOfNobody } from '../../lifecycle/remove.ts';
import { isAlive } from '../../state.ts';
import type { Container } from '../../store.ts';
import { cgroupsWithoutRecord, containerFolder, shimFolder } from '../places.ts';
import { removeRemains } from '../remove-remains.ts';
import { storeFailures } from '../store-failures.ts';
import { resume, settle, type SettleNeeds } from './settle.ts';

type Needs = SettleNeeds &
  Pick<Engine, 'setAside'> & {
    log: { error(details: object, message: string): void; warn(details: object, message: string): void };
  };

/** The shim of a container; undefined when it is gone. */
type Search = { shim: Promise<Shim | undefined>; answer: 'none yet' | 'there' | 'gone' };

/** Clients wait at most this long; the rest is recovered in the background. */
const TIMEOUT_SECONDS = 0.4;
/** The wait for further shims after the last answer of one. */
const QUIET_MS = 500;
/** The wait of one attempt for a silent shim. */
const ANSWER_TIMEOUT_SECONDS = 5;

/**
 * At the daemon's start: finds the surviving shims, records the exits that happened meanwhile, finishes or undoes
 * interrupted work, and sets up the networks of running containers.
 *
 * A container that cannot be recovered holds up no other: its record has the reason, and it is retried. `late` is
 * called for containers that are recovered after the return.
 */
export async function reconcileContainers(engine: Needs, late: (id: string) => void): Promise<void> {
  const orphans = removeOrphans(engine);
  const known = engine.containers.all();
  const searches = await searchShims(engine, known);
  const live = known.filter(({ id }) => searches.has(id) && searches.get(id)!.answer !== 'gone');
  await reconcileNetworks(engine, [...live.map(({ id }) => id), ...engine.containers.idsSetAside()]);
  let isOpen = false;
  const folders = new Set(shimFolders(engine)); // thousands of stopped containers have none
  const tasks = known
    .filter(({ id, state }) => searches.has(id) || state.status === 'removing' || folders.has(id))
    .map(({ id }) => recover(engine, id, searches.get(id)?.shim, () => (isOpen ? late(id) : undefined)));
  await allDone([...orphans, ...tasks], engine.clock);
  isOpen = true;
  await engine.background.run('remove volumes without a container', {}, async () => await removeVolumesOfNobody(engine))
    .done;
}

async function allDone(tasks: readonly Task[], clock: Clock): Promise<void> {
  const all = Promise.all(tasks.map(async ({ done }) => await done));
  await settlesWithin(
    all.then(() => undefined),
    TIMEOUT_SECONDS,
    clock,
  );
}

/** Connects to the shims of the containers that should have one. Throws `ForeignShim`. */
async function searchShims(engine: Needs, known: readonly Container[]): Promise<Map<string, Search>> {
  const searches = new Map<string, Search>();
  const foreign: ForeignShim[] = [];
  const quiet = new Quiet(engine.clock);
  const expected = known.filter(({ state }) => isAlive(state) || state.status === 'starting');
  const answers = expected.map(async ({ id }) => {
    const search: Search = { shim: Shim.reconnect(folderOf(engine, id)), answer: 'none yet' };
    searches.set(id, search);
    try {
      search.answer = (await search.shim) === undefined ? 'gone' : 'there';
    } catch (error) {
      // Any other reason recurs, and is reported, when the container is recovered.
      if (error instanceof ForeignShim) foreign.push(error);
    }
    quiet.heard();
  });
  await Promise.race([Promise.all(answers), quiet.reached]);
  quiet[Symbol.dispose]();
  if (foreign.length > 0) throw foreign[0]!;
  return searches;
}

/** A time without an answer. */
class Quiet implements Disposable {
  readonly #clock: Clock;
  readonly #reached = Promise.withResolvers<void>();
  #timer: Disposable;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#timer = clock.after(QUIET_MS, this.#reached.resolve);
  }

  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  heard(): void {
    this.#timer[Symbol.dispose]();
    this.#timer = this.#clock.after(QUIET_MS, this.#reached.resolve);
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }
}

/** Makes a container's record agree with its processes and files; `Run.isUnclear` until then. */
function recover(engine: Needs, id: string, shim: Promise<Shim | undefined> | undefined, settled: () => void): Task {
  const { background, clock, containers, locks, runs } = engine;
  runs.of(id).isUnclear = true;
  const work = async (): Promise<void> => {
    const found = shim === undefined ? undefined : await answered(shim, clock);
    using _lock = await locks.hold(id);
    const container = containers.get(id);
    if (container !== undefined && found !== undefined) await resume(engine, container, found);
    else if (container !== undefined) await settle(engine, container);
  };
  const shown = storeFailures(containers, id, "not recovered since the daemon's start, it tries again", work);
  return background.untilDone('recover a container', { container: id }, async () => {
    await shown();
    runs.of(id).isUnclear = false;
    settled();
  });
}

async function answered(shim: Promise<Shim | undefined>, clock: Clock): Promise<Shim | undefined> {
  const heard = shim.then(() => undefined);
  if (await settlesWithin(heard, ANSWER_TIMEOUT_SECONDS, clock)) return await shim;
  throw new EngineError('failed', 'its shim does not answer');
}

/** The containers with a folder: those with a record, or with a removal under way. */
export function containerFolders({ dataRoot }: Pick<Config, 'dataRoot'>): ReadonlySet<string> {
  return new Set(namesIn(join(dataRoot, 'containers')));
}

/** The remains of containers without a record: their removal was interrupted, or their record was lost. */
function removeOrphans(engine: Needs): Task[] {
  const { background, config, layers, setAside } = engine;
  const known = engine.containers.ids();
  const folders = [...containerFolders(config)].filter((id) => !known.has(id));
  // Its layer is released last: a container that still has one was being removed.
  for (const id of folders) if (!layers.isOwner(id)) setAside.take(containerFolder(config, id));
  const removed = folders.filter((id) => layers.isOwner(id));
  // Execs are recovered by their own domain.
  const shims = shimFolders(engine).filter(
    (id) => !known.has(id) && !existsSync(join(folderOf(engine, id), 'process.json')),
  );
  return [
    ...removed.map((id) =>
      background.run('remove the files of a container', { container: id }, async () => {
        tellUndelivered(engine, id, bufferPath(containerFolder(config, id)));
        await rm(containerFolder(config, id), { recursive: true, force: true });
        await layers.remove(id);
      }),
    ),
    ...shims.map((id) =>
      background.run('end a container without a record', { container: id }, async () => await end(engine, id)),
    ),
  ];
}

async function end(engine: Needs, id: string): Promise<void> {
  engine.log.warn({ container: id }, 'a container without a record is ended');
  for (const path of cgroupsWithoutRecord(id)) await removeRemains(engine.runtimes.get(), id, path);
  await rm(folderOf(engine, id), { recursive: true, force: true });
}

/** The names of the shims' folders: ids of containers and of execs. */
function shimFolders({ config }: Needs): string[] {
  return namesIn(join(config.execRoot, 'shims'));
}

function folderOf({ config }: Needs, id: string): string {
  return shimFolder(config, id);
}
