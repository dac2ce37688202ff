import { createContainer } from '../../containers/lifecycle/create.ts';
import { killContainer } from '../../containers/lifecycle/kill.ts';
import { stopContainer } from '../../containers/lifecycle/stop.ts';
import { startContainer } from '../../containers/runs/start.ts';
import { exitCodeOf, isOver } from '../../containers/state.ts';
import type { Container } from '../../containers/store.ts';
import { EngineError } from '../../lib/errors.ts';
import type { TaskImages } from './images.ts';
import { hasFiles } from './memory-files.ts';
import type { AgentNeeds } from './needs.ts';
import { joinTaskNetworks, leaveTaskNetworks } from './networks.ts';
import type { AgentTask } from './store.ts';
import { containerBody, containerNameOf } from './task-container.ts';

const UNHEALTHY = 'unhealthy container';

/** Why a task has failed: its text is the task's `Err`, word for word dockerd's. */
export class TaskFailed extends Error {}

/** The container of a task: by its name, which is the task's own, so that the next daemon finds it too. */
export function containerOf(engine: AgentNeeds, task: AgentTask): Container | undefined {
  return engine.containers.named(containerNameOf(task));
}

/** Brings the image and makes the container, if an earlier daemon has not. */
export async function prepareTask(
  engine: AgentNeeds,
  images: TaskImages,
  task: AgentTask,
  { auth, signal }: { auth: string | undefined; signal: AbortSignal },
): Promise<void> {
  if (containerOf(engine, task) !== undefined) return;
  if (task.made === undefined)
    throw new TaskFailed('the settings of the task are missing, or of a later version than this node');
  await images.bring(task.made.container.image, auth, signal);
  const networks = await joinTaskNetworks(engine, task);
  signal.throwIfAborted();
  await createContainer(engine, containerBody(task, task.made, networks), containerNameOf(task), {
    needsFiles: hasFiles(task.made),
  });
}

/** Starts the container, if an earlier daemon has not, and waits until it is healthy where that is checked. */
export async function startTask(engine: AgentNeeds, task: AgentTask, signal: AbortSignal): Promise<void> {
  const container = engine.containers.find(containerNameOf(task));
  if (container.state.status === 'created') {
    try {
      await startContainer(engine, container.id);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new TaskFailed(`starting container failed: ${error.message}`, { cause: error });
    }
  }
  if (engine.health.of(container.id) === undefined) return;
  using ended = endOf(engine, container.id, signal);
  using health = healthOf(engine, container.id);
  const first = await Promise.race([ended.code.then((code) => ({ code })), health.known]);
  if (first === 'healthy') return;
  if (first === 'unhealthy') await stopTask(engine, task);
  throwFailure(engine, container.id, first === 'unhealthy' ? await ended.code : first.code, first === 'unhealthy');
}

/** Waits for the end of the container; throws if it was a failure. */
export async function awaitTask(engine: AgentNeeds, task: AgentTask, signal: AbortSignal): Promise<void> {
  const { id } = engine.containers.find(containerNameOf(task));
  using ended = endOf(engine, id, signal);
  using health = healthOf(engine, id, 'unhealthy');
  const first = await Promise.race([ended.code.then((code) => ({ code })), health.known]);
  if (typeof first !== 'string') return throwFailure(engine, id, first.code, false);
  await stopTask(engine, task);
  throwFailure(engine, id, await ended.code, true);
}

/** Ends the container at once. */
export async function endTask(engine: AgentNeeds, task: AgentTask): Promise<void> {
  const container = containerOf(engine, task);
  if (container === undefined || isOver(container.state)) return;
  try {
    await killContainer(engine, container.id);
  } catch (error) {
    if (!(error instanceof EngineError && (error.kind === 'conflict' || error.kind === 'notFound'))) throw error;
  }
}

/** Stops the container as the service wants it; one that does not run, or is gone, is stopped. */
export async function stopTask(engine: AgentNeeds, task: AgentTask): Promise<void> {
  const container = containerOf(engine, task);
  if (container === undefined || isOver(container.state)) return;
  await leaveTaskNetworks(engine, task);
  const graceNs = task.made?.container.stopGracePeriodNs;
  try {
    await stopContainer(engine, container.id, {
      graceSeconds: graceNs === undefined ? undefined : Math.trunc(graceNs / 1e9),
    });
  } catch (error) {
    if (!(error instanceof EngineError && (error.kind === 'notModified' || error.kind === 'notFound'))) throw error;
  }
}

function throwFailure(engine: AgentNeeds, id: string, code: number, isUnhealthy: boolean): void {
  if (code === 0) return;
  const cause = isUnhealthy ? UNHEALTHY : (engine.containers.get(id)?.error ?? '');
  throw new TaskFailed(`task: non-zero exit (${code})${cause === '' ? '' : `: ${cause}`}`);
}

/** The exit code of the container's end; rejects with the signal's reason. */
function endOf(engine: AgentNeeds, id: string, signal: AbortSignal): Disposable & { code: Promise<number> } {
  const done = new AbortController();
  const wait = async (): Promise<number> => {
    const container = engine.containers.find(id);
    if (isOver(container.state)) return exitCodeOf(container.state);
    const either = AbortSignal.any([signal, done.signal]);
    const code = await engine.runs.of(id).nextEnd(either);
    if (code === undefined) throw either.reason;
    return code;
  };
  const code = wait();
  code.catch(() => undefined); // the caller may be gone
  return { code, [Symbol.dispose]: () => done.abort() };
}

type Known = 'healthy' | 'unhealthy';

/** Resolves when the checks have a result, or this one. */
function healthOf(engine: AgentNeeds, id: string, wanted?: Known): Disposable & { known: Promise<Known> } {
  const { promise: known, resolve } = Promise.withResolvers<Known>();
  const look = (): void => {
    const status = engine.health.of(id)?.status;
    const container = engine.containers.get(id);
    // A pause counts as unhealthy, but is none.
    if (status === undefined || status === 'starting' || container?.state.status !== 'running') return;
    if (wanted === undefined || status === wanted) resolve(status);
  };
  if (engine.health.of(id) === undefined) return { known, [Symbol.dispose]: () => undefined };
  const listening = engine.events.listen(look);
  look();
  return { known, [Symbol.dispose]: () => listening[Symbol.dispose]() };
}
