import type { GenericResource } from '../../lib/notations/generic-resources.ts';
import { hostPortsOf, reservationsOf } from '../state/defaults.ts';
import type { NodeRecord, TemplateRecord } from '../state/records.ts';
import type { Resources } from '../state/task-template.ts';
import { GenericPool } from './generic-pool.ts';

/** How long failures of a service's tasks on a node count, and how many count against the node. */
const FAILURE_MINUTES = 5;
const MANY_FAILURES = 5;

/** Resources of a task on a node, generic ones as reserved or as given; its ports as `8080/tcp`. */
export type Taken = Resources & Readonly<{ ports: readonly string[]; generic: readonly GenericResource[] }>;

export function takenBy(record: TemplateRecord | undefined): Taken {
  const generic = record?.template.resources?.reservations?.generic ?? [];
  return { ...reservationsOf(record?.template), ports: hostPortsOf(record ?? {}), generic };
}

/** Free resources of a node, and its tasks. */
export class NodeLoad {
  node: NodeRecord;
  /** Tasks that have not ended, of all services. */
  tasks = 0;
  #nanoCpus = 0;
  #memoryBytes = 0;
  readonly #generic = new GenericPool();
  readonly #byService = new Map<string, number>();
  /** How many tasks have each port of the node. */
  readonly #ports = new Map<string, number>();
  /** When tasks of a service failed, the last ones, in their order. */
  readonly #failures = new Map<string, Temporal.Instant[]>();

  constructor(node: NodeRecord) {
    this.node = node;
  }

  /** Counts a task of a service, or with `-1` no more. */
  add(service: string, { nanoCpus, memoryBytes, ports, generic }: Taken, times: 1 | -1 = 1): void {
    this.#generic.take(generic, times);
    for (const port of ports) this.#ports.set(port, (this.#ports.get(port) ?? 0) + times);
    this.tasks += times;
    this.#nanoCpus += times * nanoCpus;
    this.#memoryBytes += times * memoryBytes;
    const left = this.tasksOf(service) + times;
    if (left === 0) this.#byService.delete(service);
    else this.#byService.set(service, left);
  }

  addFailure(service: string, at: Temporal.Instant): void {
    const all = [...(this.#failures.get(service) ?? []), at].toSorted((a, b) => Temporal.Instant.compare(a, b));
    this.#failures.set(service, all.slice(-MANY_FAILURES));
  }

  has({ nanoCpus, memoryBytes, generic }: Omit<Taken, 'ports'>): boolean {
    if (generic.length > 0 && this.chooseGeneric(generic) === undefined) return false;
    const { nanoCpus: cpus = 0, memoryBytes: memory = 0 } = this.node.description?.resources ?? {};
    return (
      (nanoCpus === 0 || nanoCpus <= cpus - this.#nanoCpus) &&
      (memoryBytes === 0 || memoryBytes <= memory - this.#memoryBytes)
    );
  }

  /** Chooses generic resources for a task; undefined where the free ones do not suffice. */
  chooseGeneric(wanted: readonly GenericResource[]): GenericResource[] | undefined {
    return this.#generic.choose(this.node.description?.resources.generic ?? [], wanted);
  }

  publishes(port: string): boolean {
    return (this.#ports.get(port) ?? 0) > 0;
  }

  tasksOf(service: string): number {
    return this.#byService.get(service) ?? 0;
  }

  failsWith(service: string, now: Temporal.Instant): boolean {
    const [oldest, ...others] = this.#failures.get(service) ?? [];
    if (oldest === undefined || others.length + 1 < MANY_FAILURES) return false;
    return Temporal.Instant.compare(oldest, now.subtract({ minutes: FAILURE_MINUTES })) >= 0;
  }
}
