import { reservationsOf } from '../state/defaults.ts';
import type { NodeRecord, Resources, TaskRecord } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';
import type { View } from '../state/view.ts';

/** How long failures of a service's tasks on a node count, and how many count against the node. */
const FAILURE_MINUTES = 5;
const MANY_FAILURES = 5;

/** What a node has left, and what runs there. */
export class NodeLoad {
  readonly node: NodeRecord;
  /** Tasks that have not ended, of all services. */
  tasks = 0;
  #nanoCpus: number;
  #memoryBytes: number;
  readonly #byService = new Map<string, number>();
  readonly #failures = new Map<string, number>();

  constructor(view: View, node: NodeRecord, now: Temporal.Instant) {
    this.node = node;
    this.#nanoCpus = node.description?.resources.nanoCpus ?? 0;
    this.#memoryBytes = node.description?.resources.memoryBytes ?? 0;
    const since = now.subtract({ minutes: FAILURE_MINUTES });
    for (const task of view.tasksOn(node.id)) {
      const { state, timestamp } = task.status;
      if (!hasEnded(state))
        this.add(task, reservationsOf(view.get('template', `${task.service}/${task.template}`)?.template));
      else if (state === 'failed' || state === 'rejected') {
        const isRecent = Temporal.Instant.compare(Temporal.Instant.from(timestamp), since) >= 0;
        if (isRecent) this.#failures.set(task.service, (this.#failures.get(task.service) ?? 0) + 1);
      }
    }
  }

  add({ service }: Pick<TaskRecord, 'service'>, { nanoCpus, memoryBytes }: Resources): void {
    this.tasks += 1;
    this.#nanoCpus -= nanoCpus;
    this.#memoryBytes -= memoryBytes;
    this.#byService.set(service, this.tasksOf(service) + 1);
  }

  has({ nanoCpus, memoryBytes }: Resources): boolean {
    return (nanoCpus === 0 || nanoCpus <= this.#nanoCpus) && (memoryBytes === 0 || memoryBytes <= this.#memoryBytes);
  }

  tasksOf(service: string): number {
    return this.#byService.get(service) ?? 0;
  }

  failsWith(service: string): boolean {
    return (this.#failures.get(service) ?? 0) >= MANY_FAILURES;
  }
}
