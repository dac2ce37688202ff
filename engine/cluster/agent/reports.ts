import type { Clock } from '../../lib/clock.ts';
import { shortenText } from '../../lib/notations/field-schemas.ts';
import type { TaskState } from '../state/records.ts';
import type { ReportMessage } from '../wire/task-messages.ts';
import type { TaskStore } from './store.ts';

type Send = (message: ReportMessage) => void;

/** A state that the next one is likely to follow within this time is not worth a commit of the cluster. */
const HELD_BACK_MS = 100;
const PASSING: ReadonlySet<TaskState> = new Set(['accepted', 'preparing', 'ready', 'starting']);
const TASKS_AT_ONCE = 200;
/** A report ends with the task that reaches this. */
const MAX_REPORT_BYTES = 256 * 1024;

/** Tells the leader the states of tasks, one report at a time, until it says that they are stored. */
export class Reports implements Disposable {
  readonly #clock: Clock;
  readonly #tasks: TaskStore;
  readonly #held = new Map<string, Disposable>();
  readonly #due = new Set<string>();
  #send: Send | undefined;
  /** States that the leader has not stored yet. */
  #underWay: ReportMessage | undefined;
  #number = 0;
  #isAsked = false;

  constructor({ clock }: { clock: Clock }, tasks: TaskStore) {
    this.#clock = clock;
    this.#tasks = tasks;
  }

  /** A session begins: all that no leader has stored is told again. */
  begin(send: Send): void {
    this.#send = send;
    this.#underWay = undefined;
    for (const { id, acknowledged } of this.#tasks.all()) if (!acknowledged) this.#due.add(id);
    this.#sendSoon();
  }

  /** A task has another state. */
  tell(id: string, state: TaskState): void {
    if (PASSING.has(state)) {
      if (!this.#held.has(id))
        this.#held.set(
          id,
          this.#clock.after(HELD_BACK_MS, () => this.#tellNow(id)),
        );
    } else this.#tellNow(id);
  }

  /** A report is stored. */
  acknowledge(number: number): void {
    const report = this.#underWay;
    if (report?.number !== number) return; // of an earlier session
    this.#underWay = undefined;
    this.#tasks.together(() => {
      for (const { id, status } of report.tasks) {
        this.#tasks.change(id, (task) => (task.status.state === status.state ? { ...task, acknowledged: true } : task));
      }
    });
    this.#sendSoon();
  }

  [Symbol.dispose](): void {
    for (const timer of this.#held.values()) timer[Symbol.dispose]();
    this.#held.clear();
    this.#send = undefined;
  }

  #tellNow(id: string): void {
    this.#held.get(id)?.[Symbol.dispose]();
    this.#held.delete(id);
    this.#due.add(id);
    this.#sendSoon();
  }

  /** Collects states of one moment in one report. */
  #sendSoon(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    queueMicrotask(() => {
      this.#isAsked = false;
      this.#sendDue();
    });
  }

  #sendDue(): void {
    if (this.#send === undefined || this.#underWay !== undefined) return;
    const tasks: ReportMessage['tasks'] = [];
    let bytes = 0;
    for (const id of this.#due) {
      if (tasks.length >= TASKS_AT_ONCE || bytes >= MAX_REPORT_BYTES) break;
      this.#due.delete(id);
      const task = this.#tasks.get(id);
      if (task === undefined || task.acknowledged) continue;
      const { status } = task;
      const { message, error } = status;
      const texts = { message: shortenText(message), ...(error !== undefined && { error: shortenText(error) }) };
      tasks.push({ id, status: { ...status, ...texts } });
      bytes += JSON.stringify(status).length;
    }
    if (tasks.length === 0) return;
    this.#number += 1;
    this.#underWay = { say: 'report', number: this.#number, tasks };
    this.#send(this.#underWay);
  }
}
