import type { NodeLoad, Taken } from './node-load.ts';

type Group = Readonly<{ service: string; taken: Taken; now: Temporal.Instant }>;

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
    const { taken } = this.#group;
    const isFull = best?.has(taken) === false || taken.ports.some((port) => best?.publishes(port) === true);
    if (isFull) {
      const last = this.#nodes.pop()!;
      if (last !== best) this.#nodes[0] = last;
    }
    this.#sink();
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
