import type { NodeLoad, Taken } from './node-load.ts';

export type Group = Readonly<{
  service: string;
  taken: Taken;
  /** 0: no limit. */
  maxReplicas: number;
  now: Temporal.Instant;
}>;

/** A heap of nodes for the tasks of one group, the best one first. */
export class Spread {
  readonly #group: Group;
  readonly #nodes: NodeLoad[];

  constructor(group: Group, nodes: readonly NodeLoad[]) {
    this.#group = group;
    this.#nodes = nodes.toSorted((a, b) => this.#order(a, b)); // an ordered list is a heap
  }

  /** The node of the next task; undefined when all are full. */
  get best(): NodeLoad | undefined {
    return this.#nodes[0];
  }

  /** The best node has got a task. */
  settle(): void {
    const [best] = this.#nodes;
    if (best !== undefined && this.#isFull(best)) {
      const last = this.#nodes.pop()!;
      if (last !== best) this.#nodes[0] = last;
    }
    this.#sink();
  }

  #isFull(load: NodeLoad): boolean {
    const { service, taken, maxReplicas } = this.#group;
    if (maxReplicas !== 0 && load.tasksOf(service) >= maxReplicas) return true;
    return !load.has(taken) || taken.ports.some((port) => load.publishes(port));
  }

  #order(a: NodeLoad, b: NodeLoad): number {
    const { service, now } = this.#group;
    return (
      Number(a.failsWith(service, now)) - Number(b.failsWith(service, now)) ||
      a.tasksOf(service) - b.tasksOf(service) ||
      a.tasks - b.tasks ||
      (a.node.id < b.node.id ? -1 : 1)
    );
  }

  /** Moves the first node down to where it belongs. */
  #sink(): void {
    const nodes = this.#nodes;
    for (let at = 0; ;) {
      const left = 2 * at + 1;
      if (left >= nodes.length) return;
      const right = left + 1;
      const best = right < nodes.length && this.#order(nodes[right]!, nodes[left]!) < 0 ? right : left;
      if (this.#order(nodes[at]!, nodes[best]!) <= 0) return;
      [nodes[at], nodes[best]] = [nodes[best]!, nodes[at]!];
      at = best;
    }
  }
}
