import { reservationsOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Resources, Stored } from '../state/records.ts';
import { isWanted } from '../state/task-states.ts';
import { filtersOf, suitable } from './filters.ts';
import { NodeLoad } from './node-load.ts';

type Task = Stored<'task'>;

/**
 * Gives each pending task a node, or an error that says why there is none.
 *
 * Tasks of one template are a group, whose nodes are filtered once. They are spread: each goes where its service has the
 * fewest tasks, among these to the node with the fewest tasks of all; a node on which the service keeps failing is the
 * last choice. A global service's task has its node already, and waits until it fits there.
 */
export function schedule(draft: Draft, now: Temporal.Instant): void {
  const groups = Map.groupBy(pendingTasks(draft), ({ service, template }) => `${service}/${template}`);
  if (groups.size === 0) return;
  const loads = new Map([...draft.all('node')].map((node) => [node.id, new NodeLoad(draft, node, now)]));
  for (const [id, tasks] of groups) {
    const template = draft.get('template', id);
    if (template === undefined) continue;
    const reservations = reservationsOf(template.template);
    const filters = filtersOf(template);
    const free = tasks.filter(({ node }) => node === '');
    if (free.length > 0) {
      const { nodes, refusal } = suitable(loads.values(), filters);
      const choice = new Spread(free[0]!.service, nodes, reservations);
      const without = free.filter((task) => !assign(draft, task, choice.next(), now));
      // What the group itself has taken is a reason too.
      const why = without.length > 0 && nodes.length > 0 ? suitable(loads.values(), filters).refusal : refusal;
      for (const task of without) refuse(draft, task, why, now);
    }
    for (const task of tasks) {
      if (task.node === '') continue;
      const own = loads.get(task.node);
      const { nodes, refusal } = suitable(own === undefined ? [] : [own], filters);
      nodes[0]?.add(task, reservations);
      if (!assign(draft, task, nodes[0], now)) refuse(draft, task, refusal, now);
    }
  }
}

function pendingTasks(draft: Draft): IteratorObject<Task> {
  return draft.all('task').filter(({ status, desired }) => status.state === 'pending' && isWanted(desired));
}

function assign(draft: Draft, task: Task, load: NodeLoad | undefined, now: Temporal.Instant): boolean {
  if (load === undefined) return false;
  const timestamp = now.toString();
  const status = { state: 'assigned', timestamp, message: 'scheduler assigned task to node' } as const;
  draft.put('task', { ...task, node: load.node.id, status, updatedAt: timestamp });
  return true;
}

/** Changes nothing where the task says so already. */
function refuse(draft: Draft, task: Task, error: string, now: Temporal.Instant): void {
  if (task.status.error === error) return;
  const status = { ...task.status, timestamp: now.toString(), message: 'pending task scheduling', error };
  draft.put('task', { ...task, status, updatedAt: now.toString() });
}

/** A heap of nodes, the best one first. */
class Spread {
  readonly #service: string;
  readonly #nodes: NodeLoad[];
  readonly #reservations: Resources;

  constructor(service: string, nodes: readonly NodeLoad[], reservations: Resources) {
    this.#service = service;
    this.#reservations = reservations;
    this.#nodes = nodes.toSorted((a, b) => this.#order(a, b)); // an ordered list is a heap
  }

  /** The node of the next task, which counts there from now on. */
  next(): NodeLoad | undefined {
    const best = this.#nodes[0];
    if (best === undefined) return undefined;
    best.add({ service: this.#service }, this.#reservations);
    if (!best.has(this.#reservations)) {
      const last = this.#nodes.pop()!;
      if (last !== best) this.#nodes[0] = last;
    }
    this.#sink();
    return best;
  }

  #order(a: NodeLoad, b: NodeLoad): number {
    return (
      Number(a.failsWith(this.#service)) - Number(b.failsWith(this.#service)) ||
      a.tasksOf(this.#service) - b.tasksOf(this.#service) ||
      a.tasks - b.tasks ||
      (a.node.id < b.node.id ? -1 : 1)
    );
  }

  /** Moves the first node down to where it belongs. */
  #sink(): void {
    const nodes = this.#nodes;
    for (let at = 0; ;) {
      const children = [2 * at + 1, 2 * at + 2].filter((child) => child < nodes.length);
      const best = children.toSorted((a, b) => this.#order(nodes[a]!, nodes[b]!))[0];
      if (best === undefined || this.#order(nodes[at]!, nodes[best]!) <= 0) return;
      [nodes[at], nodes[best]] = [nodes[best]!, nodes[at]!];
      at = best;
    }
  }
}
