import { settlesWithin } from '../../lib/clock.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { LogPublisher, type OpenToLeader } from '../logs/publisher.ts';
import { hasEnded, compareStates } from '../state/task-states.ts';
import type { FromLeader, FromNode } from '../wire/schemas.ts';
import { NodeTemplate, type TasksMessage } from '../wire/task-messages.ts';
import { TaskImages } from './images.ts';
import { filesOf } from './memory-files.ts';
import type { AgentNeeds } from './needs.ts';
import { Reports } from './reports.ts';
import { endTask } from './steps.ts';
import { TaskStore, type AgentTask } from './store.ts';
import { TaskFiles } from './task-files.ts';
import { TaskRun } from './task-run.ts';

/** A stop with a long grace goes on under the next daemon. */
const MAX_END_SECONDS = 5;

/** A client waits for the end of a leave: a longer grace is not kept. */
const MAX_LEAVE_SECONDS = 30;

const check = lazyCheck(NodeTemplate);

type Told = TasksMessage['tasks'][number];

/**
 * Runs the tasks of this node. What is to run is stored here, so that it goes on without a manager; only a leader adds,
 * changes and removes.
 */
export class Agent implements AsyncDisposable {
  readonly #engine: AgentNeeds;
  readonly #node: string;
  readonly #tasks: TaskStore;
  readonly #images: TaskImages;
  readonly #reports: Reports;
  readonly #files = new TaskFiles();
  readonly #logs: LogPublisher;
  readonly #runs = new Map<string, TaskRun>();
  readonly #templates = new Map<string, NodeTemplate>();
  /** The tasks that were told since the session began. */
  #named = new Set<string>();
  #hasAll = false;
  #isEnding = false;

  constructor(engine: AgentNeeds, node: string, openLogs: OpenToLeader) {
    this.#engine = engine;
    this.#node = node;
    this.#tasks = new TaskStore(engine.db);
    this.#images = new TaskImages(engine);
    this.#reports = new Reports(engine, this.#tasks);
    const parts = { tasks: this.#tasks, files: this.#files };
    engine.memoryFiles.use(async (container) => await filesOf(engine, parts, container));
    this.#logs = new LogPublisher(engine, this.#tasks, openLogs);
    for (const task of this.#tasks.all()) {
      if (task.node !== node) this.#tasks.put({ ...task, isGone: true }); // of an earlier membership
      this.#run(task.id);
    }
  }

  hear(message: FromLeader, send: (message: FromNode) => void): void {
    if (this.#isEnding) return;
    if (message.say === 'welcome') this.#begin(send, message.files === true);
    if (message.say === 'tasks') this.#take(message);
    if (message.say === 'allTasks') this.#forgetOthers();
    if (message.say === 'file') this.#files.take(message);
    if (message.say === 'logs') this.#logs.hear(message);
    if (message.say === 'ack') this.#reports.acknowledge(message.number);
  }

  /** The node leaves its cluster: its tasks end, and nothing of them stays. */
  async leave(): Promise<void> {
    this.#isEnding = true;
    this.#logs[Symbol.dispose]();
    this.#reports[Symbol.dispose]();
    const tasks = this.#tasks.all();
    this.#remove(tasks.map(({ id }) => id));
    const ended = Promise.all([...this.#runs.values()].map(async ({ done }) => await done));
    if (await settlesWithin(ended, MAX_LEAVE_SECONDS, this.#engine.clock)) return;
    await Promise.all(tasks.map(async (task) => await endTask(this.#engine, task)));
    await ended;
  }

  /** The daemon ends; containers go on, and so does the next daemon. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#logs[Symbol.dispose]();
    this.#reports[Symbol.dispose]();
    const ends = Promise.all([...this.#runs.values()].map(async (run) => await run.end()));
    await settlesWithin(ends, MAX_END_SECONDS, this.#engine.clock);
    this.#engine.memoryFiles.use(undefined);
  }

  #begin(send: (message: FromNode) => void, hasFiles: boolean): void {
    this.#files.begin(hasFiles ? send : undefined);
    this.#named = new Set();
    this.#templates.clear();
    this.#reports.begin(send);
  }

  #take({ templates, tasks, gone }: TasksMessage): void {
    for (const [key, template] of Object.entries(templates)) {
      if (check.Check(template)) this.#templates.set(key, template);
    }
    this.#tasks.together(() => {
      for (const told of tasks) this.#store(told);
    });
    for (const { assignment, auth } of tasks) {
      this.#named.add(assignment.id);
      this.#run(assignment.id, auth);
    }
    this.#remove(gone);
  }

  #store({ assignment, state, auth }: Told): void {
    const { id } = assignment;
    const had = this.#tasks.get(id);
    if (had === undefined) {
      const timestamp = this.#engine.clock.now().toString();
      this.#tasks.put({
        ...assignment,
        node: this.#node,
        made: this.#templates.get(assignment.template),
        status: { state: hasEnded(state) ? state : 'assigned', timestamp, message: '' },
        acknowledged: true,
        needsAuth: auth !== undefined,
      });
      return;
    }
    // A leader whose etcd was set back knows less than it once stored.
    const acknowledged = had.acknowledged && compareStates(state, had.status.state) >= 0;
    this.#tasks.put({ ...had, desired: assignment.desired, addresses: assignment.addresses, acknowledged });
    if (had.acknowledged && !acknowledged) this.#reports.tell(id, had.status.state);
  }

  #run(id: string, auth?: string): void {
    const running = this.#runs.get(id);
    if (running !== undefined) {
      running.auth = auth ?? running.auth;
      running.wake();
      return;
    }
    const parts = {
      engine: this.#engine,
      tasks: this.#tasks,
      images: this.#images,
      reports: this.#reports,
      hasAll: () => this.#hasAll,
    };
    const run = new TaskRun(parts, id, auth);
    this.#runs.set(id, run);
    this.#engine.background.run('forget a task', { task: id }, async () => {
      await run.done;
      if (!this.#isEnding) this.#runs.delete(id);
    });
  }

  /** Removes tasks that the leader did not list in this session. */
  #forgetOthers(): void {
    this.#hasAll = true;
    this.#remove(this.#tasks.all().flatMap(({ id }: AgentTask) => (this.#named.has(id) ? [] : [id])));
    for (const run of this.#runs.values()) run.wake();
  }

  #remove(ids: readonly string[]): void {
    this.#tasks.together(() => {
      for (const id of ids) this.#tasks.change(id, (task) => ({ ...task, isGone: true }));
    });
    for (const id of ids) this.#run(id);
  }
}
