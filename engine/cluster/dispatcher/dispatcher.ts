import type { Turns } from '../leader/turns.ts';
import { needsFiles } from '../secrets/deliver.ts';
import type { Stored } from '../state/records.ts';
import type { Commit, Replica } from '../state/replica.ts';
import type { FromLeader } from '../wire/schemas.ts';
import type { ReportMessage, TasksMessage } from '../wire/task-messages.ts';
import { assignmentOf, isAssigned, nodeTemplate, templateKey } from './assignments.ts';
import { applyReport } from './reports.ts';

type Needs = Readonly<{ replica: Replica; turns: Turns }>;
type Send = (message: FromLeader) => void;

/** Tasks in one message: a line of some 100 KB with small templates. */
const TASKS_AT_ONCE = 200;
/** A message ends with the task whose template or credentials reach this. */
const MAX_MESSAGE_LETTERS = 1024 * 1024;

/** Messages that a node got in its session. */
class Listener {
  readonly node: string;
  /** Whether it can get secrets and configs. */
  readonly takesFiles: boolean;
  readonly #send: Send;
  readonly #templates = new Set<string>();
  /** By task: what it is to do, as text. */
  readonly #told = new Map<string, string>();

  constructor(node: string, send: Send, takesFiles: boolean) {
    this.node = node;
    this.takesFiles = takesFiles;
    this.#send = send;
  }

  knows(id: string): boolean {
    return this.#told.has(id);
  }

  /** Sends what the node does not know yet of these tasks, and which of its tasks are gone. */
  tell(replica: Replica, tasks: readonly Stored<'task'>[], gone: readonly string[] = []): void {
    const news = tasks.filter((task) => this.#isNews(task));
    const lost = gone.filter((id) => this.#told.delete(id));
    let message = emptyMessage(lost);
    let letters = 0;
    for (const task of news) {
      if (message.tasks.length >= TASKS_AT_ONCE || letters > MAX_MESSAGE_LETTERS) {
        this.#send(message);
        message = emptyMessage();
        letters = 0;
      }
      letters += this.#add(message, replica, task);
    }
    if (message.tasks.length + message.gone.length > 0) this.#send(message);
  }

  #isNews(task: Stored<'task'>): boolean {
    const told = JSON.stringify([task.desired, task.addresses]);
    if (this.#told.get(task.id) === told) return false;
    this.#told.set(task.id, told);
    return true;
  }

  /** Adds a task to a message, and its template if the node does not know that. Returns the letters of what may be long. */
  #add(message: TasksMessage, replica: Replica, task: Stored<'task'>): number {
    const sent = assignmentOf(replica, task);
    message.tasks.push(sent);
    const letters = sent.auth?.length ?? 0;
    const key = templateKey(task);
    const template = this.#templates.has(key) ? undefined : nodeTemplate(replica, key);
    if (template === undefined) return letters;
    this.#templates.add(key);
    message.templates[key] = template;
    return letters + JSON.stringify(template).length;
  }
}

function emptyMessage(gone: string[] = []): TasksMessage {
  return { say: 'tasks', templates: {}, tasks: [], gone };
}

/**
 * Tells each node its own tasks: all of them when its session begins, then what changes. What the nodes say of them goes
 * into the leader's turns.
 */
export class Dispatcher implements Disposable {
  readonly #needs: Needs;
  readonly #listeners = new Map<string, Listener>();
  /** The node of each task that was told to one: a record that is gone names none. */
  readonly #nodes = new Map<string, string>();
  readonly #commits: Disposable;

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#commits = needs.replica.onCommit((commit) => this.#follow(commit));
  }

  /** A node's session begins; a new one of the same node takes the place of the last. */
  begin(node: string, send: Send, takesFiles: boolean): void {
    const { replica } = this.#needs;
    const listener = new Listener(node, send, takesFiles);
    this.#listeners.set(node, listener);
    this.#tell(
      listener,
      replica.tasksOn(node).filter((task) => isAssigned(task)),
    );
    send({ say: 'allTasks' });
  }

  end(node: string): void {
    this.#listeners.delete(node);
  }

  /** A node says what became of its tasks. Without an answer it says so again, to the next leader. */
  async hear(node: string, report: ReportMessage, send: Send): Promise<void> {
    await this.#needs.turns.write((draft, now) => applyReport(draft, node, report, now));
    send({ say: 'ack', number: report.number });
  }

  [Symbol.dispose](): void {
    this.#commits[Symbol.dispose]();
    this.#listeners.clear();
  }

  #follow({ changes }: Commit): void {
    const { replica } = this.#needs;
    const tasks = new Map<string, Stored<'task'>[]>();
    const gone = new Map<string, string[]>();
    for (const { kind, id } of changes) {
      if (kind !== 'task') continue;
      const task = replica.get('task', id);
      if (task === undefined) add(gone, this.#nodes.get(id), id);
      else if (isAssigned(task)) add(tasks, task.node, task);
    }
    for (const node of new Set([...tasks.keys(), ...gone.keys()])) {
      const listener = this.#listeners.get(node);
      const lost = gone.get(node) ?? [];
      if (listener !== undefined) this.#tell(listener, (tasks.get(node) ?? []).values(), lost);
      for (const id of lost) this.#nodes.delete(id);
    }
  }

  #tell(listener: Listener, tasks: IteratorObject<Stored<'task'>>, gone: readonly string[] = []): void {
    const { replica } = this.#needs;
    const all = [...tasks].filter((task) => listener.takesFiles || !needsFiles(replica, task));
    for (const { id } of all) this.#nodes.set(id, listener.node);
    listener.tell(replica, all, gone);
  }
}

function add<T>(lists: Map<string, T[]>, key: string | undefined, value: T): void {
  if (key === undefined) return;
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
