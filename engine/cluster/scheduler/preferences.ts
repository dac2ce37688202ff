import { labelValue } from './constraint.ts';
import type { NodeLoad } from './node-load.ts';
import { Spread, type Group } from './spread.ts';

/** Chooses the node of the next task of a group. */
export type Choice = { readonly best: NodeLoad | undefined; settle: () => void };

/**
 * Spreads the tasks of a group over the values of labels, the first label first: each value gets equal numbers of the service's
 * tasks, a missing label counting as a value. Within the last label the nodes are spread as without preferences. `all` are
 * also the nodes that the filters refuse: their tasks count. Other keys than labels are ignored, as by dockerd.
 */
export function spreadOver(
  keys: readonly string[],
  group: Group,
  nodes: readonly NodeLoad[],
  all: readonly NodeLoad[],
): Choice {
  const [key, ...rest] = keys;
  if (key === undefined) return new Spread(group, nodes);
  const valueOf = ({ node }: NodeLoad): string | undefined => labelValue(node, key);
  const [first] = nodes;
  if (first === undefined || valueOf(first) === undefined) return spreadOver(rest, group, nodes, all);
  const counted = Map.groupBy(all, valueOf);
  const branches = [...Map.groupBy(nodes, valueOf)].map(([value, own]) => {
    const others = counted.get(value) ?? [];
    const tasks = others.reduce((sum, load) => sum + load.tasksOf(group.service), 0);
    return { tasks, choice: spreadOver(rest, group, own, others) };
  });
  return new Branches(branches);
}

type Branch = { tasks: number; readonly choice: Choice };

/** Nodes by the values of a label; the value with the fewest tasks comes first. */
class Branches implements Choice {
  readonly #branches: readonly Branch[];

  constructor(branches: readonly Branch[]) {
    this.#branches = branches;
  }

  get best(): NodeLoad | undefined {
    return this.#next?.choice.best;
  }

  settle(): void {
    const next = this.#next;
    if (next === undefined) return;
    next.tasks += 1;
    next.choice.settle();
  }

  get #next(): Branch | undefined {
    return this.#branches
      .filter(({ choice }) => choice.best !== undefined)
      .reduce<Branch | undefined>((least, other) => (least && least.tasks <= other.tasks ? least : other), undefined);
  }
}
