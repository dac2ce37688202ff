import type { NodeRecord, TaskRecord } from '../state/records.ts';
import { compareStates, hasEnded } from '../state/task-states.ts';
import type { View } from '../state/view.ts';
import { NodeLoad, takenBy, type Taken } from './node-load.ts';

/** Resources of a task on a node: none while it has no node, and when it has ended. */
type Counted = Readonly<{ node: string; service: string; taken: Taken }>;

/** Loads of all nodes, kept up with the changes of tasks and nodes. */
export class Loads {
  readonly #nodes = new Map<string, NodeLoad>();
  readonly #counted = new Map<string, Counted>();

  get(node: string): NodeLoad | undefined {
    return this.#nodes.get(node);
  }

  all(): IteratorObject<NodeLoad> {
    return this.#nodes.values();
  }

  setNode(id: string, node: NodeRecord | undefined): void {
    const load = this.#nodes.get(id);
    if (node === undefined) this.#nodes.delete(id);
    else if (load === undefined) this.#nodes.set(id, new NodeLoad(node));
    else load.node = node;
  }

  /** Takes a task as it is now; its node has to be set before. Returns whether it has left room on a node. */
  setTask(view: View, id: string, task: TaskRecord | undefined): boolean {
    const before = this.#counted.get(id);
    const isThere = task !== undefined && takesRoom(task);
    if (isThere && before?.node === task.node) return false;
    if (before !== undefined) {
      this.#counted.delete(id);
      const load = this.#nodes.get(before.node);
      load?.add(before.service, before.taken, -1);
      if (task !== undefined && hasFailed(task)) {
        load?.addFailure(task.service, Temporal.Instant.from(task.updatedAt));
      }
    }
    if (isThere) this.#count(view, task);
    return before !== undefined;
  }

  /** A task that failed before these loads were made. */
  addFailure(task: TaskRecord): void {
    if (!hasFailed(task)) return;
    this.#nodes.get(task.node)?.addFailure(task.service, Temporal.Instant.from(task.updatedAt));
  }

  #count(view: View, { id, node, service, template, generic = [] }: TaskRecord): void {
    const taken = { ...takenBy(view.get('template', `${service}/${template}`)), generic };
    this.#counted.set(id, { node, service, taken });
    this.#nodes.get(node)?.add(service, taken);
  }
}

/** A global service's task has a node before it is assigned: there it is not counted yet. */
function takesRoom({ node, status }: TaskRecord): boolean {
  return node !== '' && compareStates(status.state, 'assigned') >= 0 && !hasEnded(status.state);
}

function hasFailed({ status }: TaskRecord): boolean {
  return status.state === 'failed' || status.state === 'rejected';
}
