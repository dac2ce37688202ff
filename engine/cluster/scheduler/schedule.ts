import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { isWanted } from '../state/task-states.ts';
import type { Change, View } from '../state/view.ts';
import { filtersOf, suitable } from './filters.ts';
import { Loads } from './loads.ts';
import { takenBy, type NodeLoad } from './node-load.ts';
import { spreadOver } from './preferences.ts';

type Task = Stored<'task'>;

/** Tasks that are placed, or tried, in one turn. */
const MAX_TRIES = 2000;

/**
 * Gives each pending task a node, or an error that says why there is none.
 *
 * Tasks of one template are a group, whose nodes are filtered once. They are spread: each goes where its service has the
 * fewest tasks, among these to the node with the fewest tasks of all; a node on which the service keeps failing is the
 * last choice. A global service's task has its node already, and waits until it fits there.
 *
 * Loads and waiting tasks are kept from turn to turn; all of it follows from the records.
 */
export class Scheduler {
  readonly #loads = new Loads();
  /** The pending tasks by group; in each those first that have not been tried for longest. */
  readonly #groups = new Map<string, Set<string>>();
  /** How many tasks of a group the last turn had no time for. */
  #untried = new Map<string, number>();

  constructor(view: View) {
    for (const node of view.all('node')) this.#loads.setNode(node.id, node);
    for (const task of view.all('task')) {
      this.#loads.setTask(view, task.id, task);
      this.#loads.addFailure(task);
      this.#wait(task);
    }
  }

  /**
   * Places what waits. Groups without a node are looked at again when a node changes or a task leaves one. False: the turn is
   * full, and there is more to place.
   */
  run(draft: Draft, now: Temporal.Instant): boolean {
    const groups = new Set<string>();
    let hasRoom = false;
    // Nodes first: a task may be on a new one.
    for (const { kind, id, record } of draft.changes) {
      if (kind !== 'node') continue;
      this.#loads.setNode(id, record);
      hasRoom = true;
    }
    for (const change of draft.changes) {
      if (change.kind !== 'task') continue;
      if (this.#loads.setTask(draft, change.id, change.record)) hasRoom = true;
      const group = this.#noteTask(change);
      if (group !== undefined) groups.add(group);
    }
    return this.#placeAll(draft, hasRoom ? new Set(this.#groups.keys()) : groups, now);
  }

  /** Groups that the last turn had no time for come first, and then those that this one began last. */
  #placeAll(draft: Draft, groups: ReadonlySet<string>, now: Temporal.Instant): boolean {
    const before = this.#untried;
    const begun = new Map<string, number>();
    this.#untried = new Map();
    let most = MAX_TRIES;
    for (const group of new Set([...before.keys(), ...groups])) {
      const untried = groups.has(group) ? (this.#groups.get(group)?.size ?? 0) : before.get(group)!;
      const tried = Math.min(untried, most);
      if (tried > 0) this.#place(draft, group, tried, now);
      most -= tried;
      if (untried > tried) (tried > 0 ? begun : this.#untried).set(group, untried - tried);
    }
    for (const [group, untried] of begun) this.#untried.set(group, untried);
    return this.#untried.size === 0;
  }

  /** The group of a task that waits. */
  #noteTask({ record }: Change & { kind: 'task' }): string | undefined {
    return record === undefined ? undefined : this.#wait(record);
  }

  #wait(task: Pick<Task, 'id' | 'service' | 'template' | 'status' | 'desired'>): string | undefined {
    if (!isPending(task)) return undefined;
    const group = groupOf(task);
    const tasks = this.#groups.get(group);
    if (tasks === undefined) this.#groups.set(group, new Set([task.id]));
    else tasks.add(task.id);
    return group;
  }

  #place(draft: Draft, group: string, most: number, now: Temporal.Instant): void {
    const waiting = this.#groups.get(group) ?? new Set();
    const ids = [...waiting.values().take(most)];
    for (const id of ids) waiting.delete(id);
    const tasks = ids.flatMap((id) => {
      const task = draft.get('task', id);
      return task !== undefined && isPending(task) ? [task] : [];
    });
    const template = draft.get('template', group);
    if (template === undefined) return void this.#groups.delete(group);
    const filters = filtersOf(template);
    const left = [
      ...this.#spread(
        draft,
        tasks.filter(({ node }) => node === ''),
        { template, filters, now },
      ),
      ...this.#keep(
        draft,
        tasks.filter(({ node }) => node !== ''),
        { template, filters, now },
      ),
    ];
    for (const { id } of left) waiting.add(id);
    if (waiting.size === 0) this.#groups.delete(group);
  }

  /** Tasks that may go to any node; returns those without one. */
  #spread(draft: Draft, tasks: readonly Task[], { template, filters, now }: Group): Task[] {
    const [first] = tasks;
    if (first === undefined) return [];
    const { nodes, refusal } = suitable(this.#loads.all(), filters);
    const { maxReplicas = 0, spreadOver: keys = [] } = template.template.placement ?? {};
    const own = { service: first.service, taken: takenBy(template), maxReplicas, now };
    const choice = spreadOver(keys, own, nodes, keys.length === 0 ? nodes : [...this.#loads.all()]);
    const without = tasks.filter((task) => {
      const load = choice.best;
      if (load === undefined) return true;
      this.#assign(draft, task, load, { template, now });
      choice.settle();
      return false;
    });
    // Resources that the group itself has taken are a reason too.
    const why = without.length > 0 && nodes.length > 0 ? suitable(this.#loads.all(), filters).refusal : refusal;
    for (const task of without) refuse(draft, task, why, now);
    return without;
  }

  /** Tasks of a global service: each has its node already. */
  #keep(draft: Draft, tasks: readonly Task[], { template, filters, now }: Group): Task[] {
    return tasks.filter((task) => {
      const own = this.#loads.get(task.node);
      const { nodes, refusal } = suitable(own === undefined ? [] : [own], filters);
      if (nodes[0] === undefined) refuse(draft, task, refusal, now);
      else this.#assign(draft, task, nodes[0], { template, now });
      return nodes[0] === undefined;
    });
  }

  #assign(draft: Draft, task: Task, load: NodeLoad, { template, now }: Pick<Group, 'template' | 'now'>): void {
    const generic = load.chooseGeneric(takenBy(template).generic) ?? [];
    const timestamp = now.toString();
    const status = { state: 'assigned', timestamp, message: 'scheduler assigned task to node' } as const;
    const assigned = {
      ...{ ...task, node: load.node.id, status, updatedAt: timestamp },
      ...(generic.length === 0 ? {} : { generic }),
    };
    draft.put('task', assigned);
    this.#loads.setTask(draft, task.id, assigned);
  }
}

type Group = Readonly<{ template: Stored<'template'>; filters: ReturnType<typeof filtersOf>; now: Temporal.Instant }>;

function isPending({ status, desired }: Pick<Task, 'status' | 'desired'>): boolean {
  return status.state === 'pending' && isWanted(desired);
}

function groupOf({ service, template }: Pick<Task, 'service' | 'template'>): string {
  return `${service}/${template}`;
}

/** Changes nothing where the task says so already. */
function refuse(draft: Draft, task: Task, error: string, now: Temporal.Instant): void {
  if (task.status.error === error) return;
  const status = { ...task.status, timestamp: now.toString(), message: 'pending task scheduling', error };
  draft.put('task', { ...task, status, updatedAt: now.toString() });
}
