import { removeContainer } from '../../containers/lifecycle/remove.ts';
import { exitCodeOf, isAlive } from '../../containers/state.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import type { TaskState } from '../state/records.ts';
import { compareStates, hasEnded, isWanted } from '../state/task-states.ts';
import type { TaskStatus } from '../wire/task-messages.ts';
import type { TaskImages } from './images.ts';
import type { AgentNeeds } from './needs.ts';
import type { Reports } from './reports.ts';
import { awaitTask, containerOf, prepareTask, startTask, stopTask, TaskFailed } from './steps.ts';
import type { AgentTask, TaskStore } from './store.ts';

type Parts = Readonly<{
  engine: AgentNeeds;
  tasks: TaskStore;
  images: TaskImages;
  reports: Reports;
  /** Whether the leader has told all tasks, and with them the credentials. */
  hasAll: () => boolean;
}>;
type Step = Readonly<{ state: TaskState; message: string }>;

const RETRY_DELAY_MS = 1000;

/** One task on its node, from its assignment to the removal of its container: each state is stored before the next step. */
export class TaskRun {
  readonly id: string;
  readonly done: Promise<void>;
  /** For the pull of the image; in memory only. */
  auth: string | undefined;
  readonly #parts: Parts;
  #woken = Promise.withResolvers<void>();
  #interrupt = new AbortController();
  #isEnding = false;

  constructor(parts: Parts, id: string, auth?: string) {
    this.#parts = parts;
    this.id = id;
    this.auth = auth;
    this.done = parts.engine.background.untilDone('run a task', { task: id }, async () => await this.#run()).done;
  }

  /** Its stored assignment has changed. */
  wake(): void {
    const task = this.#parts.tasks.get(this.id);
    if (task === undefined || task.isGone === true || !isWanted(task.desired)) this.#interrupt.abort();
    this.#woken.resolve();
  }

  /** The daemon ends; the container goes on. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#interrupt.abort();
    this.#woken.resolve();
    await this.done;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // the constructor returns first
    while (!this.#isEnding) {
      this.#woken = Promise.withResolvers();
      this.#interrupt = new AbortController();
      const task = this.#parts.tasks.get(this.id);
      if (task === undefined) return;
      if (!(await this.#advance(task, this.#interrupt.signal))) await this.#woken.promise;
    }
  }

  /** Whether to look at once what comes next. */
  async #advance(task: AgentTask, signal: AbortSignal): Promise<boolean> {
    const { engine } = this.#parts;
    if (task.isGone === true) return await this.#remove(task);
    if (hasEnded(task.status.state)) return false;
    if (!isWanted(task.desired)) return await this.#stop(task);
    try {
      const next = await this.#step(task, signal);
      if (next !== undefined) this.#enter(next);
      return next !== undefined;
    } catch (error) {
      if (signal.aborted) return true;
      if (!(error instanceof EngineError || error instanceof TaskFailed)) {
        engine.log.error({ err: error, task: this.id }, 'a task failed by an unexpected error');
      }
      const state = compareStates(task.status.state, 'starting') < 0 ? 'rejected' : 'failed';
      this.#enter({ state, message: task.status.message }, messageOf(error));
      return true;
    }
  }

  /** The next state of a task that is to run; undefined while it waits. */
  async #step(task: AgentTask, signal: AbortSignal): Promise<Step | undefined> {
    const { engine, images, hasAll } = this.#parts;
    switch (task.status.state) {
      case 'new':
      case 'pending':
      case 'assigned':
        return { state: 'accepted', message: 'accepted' };
      case 'accepted':
        return { state: 'preparing', message: 'preparing' };
      case 'preparing':
        if (task.needsAuth && this.auth === undefined && !hasAll()) return undefined;
        await prepareTask(engine, images, task, { auth: this.auth, signal });
        this.auth = undefined;
        return { state: 'ready', message: 'prepared' };
      case 'ready':
        return task.desired === 'ready' ? undefined : { state: 'starting', message: 'starting' };
      case 'starting':
        await startTask(engine, task, signal);
        return { state: 'running', message: 'started' };
      case 'running':
        await awaitTask(engine, task, signal);
        return { state: 'complete', message: 'finished' };
      case 'complete':
      case 'shutdown':
      case 'failed':
      case 'rejected':
      case 'orphaned':
        return undefined;
    }
  }

  async #stop(task: AgentTask): Promise<boolean> {
    return await this.#again('stop', async () => {
      await stopTask(this.#parts.engine, task);
      this.#enter({ state: 'shutdown', message: 'shutdown' });
    });
  }

  async #remove(task: AgentTask): Promise<boolean> {
    const { engine, tasks } = this.#parts;
    return await this.#again('remove', async () => {
      await stopTask(engine, task);
      const container = containerOf(engine, task);
      if (container !== undefined) await removeContainer(engine, container.id, { force: true, volumes: true });
      tasks.delete(task.id);
    });
  }

  /** Runs work that has to succeed in the end; a failure is retried after a while. */
  async #again(verb: string, work: () => Promise<void>): Promise<boolean> {
    const { clock, log } = this.#parts.engine;
    try {
      await work();
    } catch (error) {
      if (this.#isEnding) return true;
      log.warn({ err: error, task: this.id }, `failed to ${verb} the container of a task, retrying`);
      await settlesWithin(this.#woken.promise, RETRY_DELAY_MS / 1000, clock);
    }
    return true;
  }

  #enter({ state, message }: Step, error?: string): void {
    const { engine, reports, tasks } = this.#parts;
    const timestamp = engine.clock.now().toString();
    const changed = tasks.change(this.id, (task) => {
      const container = containerStatus(engine, task);
      const startedAt = state === 'running' ? timestamp : task.status.startedAt;
      const status: TaskStatus = {
        state,
        timestamp,
        message,
        ...(error === undefined ? {} : { error }),
        ...(startedAt === undefined ? {} : { startedAt }),
        ...(container === undefined ? {} : { container }),
        ...(state === 'running' ? portsOf(engine, container?.id ?? '') : {}),
      };
      return { ...task, status, acknowledged: false };
    });
    if (changed !== undefined) reports.tell(this.id, state);
  }
}

/** Once each: a port is published for both families. */
function portsOf({ networks }: AgentNeeds, container: string): Pick<TaskStatus, 'ports'> {
  const all = networks.endpointsOf(container).flatMap(({ ports }) => ports);
  const byText = new Map(
    all.map(({ protocol, containerPort, hostPort }) => {
      return [`${hostPort}/${protocol}`, { protocol, targetPort: containerPort, publishedPort: hostPort }] as const;
    }),
  );
  return byText.size === 0 ? {} : { ports: [...byText.values()] };
}

function containerStatus(engine: AgentNeeds, task: AgentTask): TaskStatus['container'] {
  const container = containerOf(engine, task);
  if (container === undefined) return task.status.container;
  const { id, state } = container;
  return { id, pid: isAlive(state) ? state.pid : 0, exitCode: exitCodeOf(state) };
}
