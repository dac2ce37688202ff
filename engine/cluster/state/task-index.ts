import type { TaskRecord } from './records.ts';

/** The ids of tasks by their service and by their node. */
export class TaskIndex {
  readonly #byService = new Map<string, Set<string>>();
  readonly #byNode = new Map<string, Set<string>>();

  replace(before: TaskRecord | undefined, after: TaskRecord | undefined): void {
    if (before !== undefined && before.service !== after?.service) remove(this.#byService, before.service, before.id);
    if (before !== undefined && before.node !== after?.node) remove(this.#byNode, before.node, before.id);
    if (after !== undefined && after.service !== before?.service) add(this.#byService, after.service, after.id);
    if (after !== undefined && after.node !== before?.node) add(this.#byNode, after.node, after.id);
  }

  ofService(service: string): ReadonlySet<string> {
    return this.#byService.get(service) ?? NONE;
  }

  onNode(node: string): ReadonlySet<string> {
    return this.#byNode.get(node) ?? NONE;
  }

  clear(): void {
    this.#byService.clear();
    this.#byNode.clear();
  }
}

const NONE: ReadonlySet<string> = new Set();

function add(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  if (ids === undefined) index.set(key, new Set([id]));
  else ids.add(id);
}

function remove(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  if (ids?.delete(id) === true && ids.size === 0) index.delete(key);
}
