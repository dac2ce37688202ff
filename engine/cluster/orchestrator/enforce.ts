import { parseConstraint, satisfies } from '../scheduler/constraint.ts';
import { GenericPool } from '../scheduler/generic-pool.ts';
import { constraintsOf, reservationsOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import { hasEnded, isWanted } from '../state/task-states.ts';
import type { Turn } from './turn.ts';

/**
 * Rejects the tasks that a changed node no longer fits: a constraint of theirs, or what they reserve. Returns their
 * services, which have to find other nodes for them.
 */
export function enforce(draft: Draft, id: string, turn: Turn): ReadonlySet<string> {
  const services = new Set<string>();
  const node = draft.get('node', id);
  if (node === undefined || node.status.state === 'down' || node.spec.availability === 'drain') return services;
  const left = { ...(node.description?.resources ?? { nanoCpus: 0, memoryBytes: 0 }) };
  const pool = new GenericPool();
  const tasks = turn
    .lookAt(draft.tasksOn(id))
    .filter(({ status, desired }) => isWanted(desired) && !hasEnded(status.state));
  for (const task of tasks.toSorted((a, b) => Temporal.Instant.compare(a.createdAt, b.createdAt))) {
    if (task.status.state === 'new' || task.status.state === 'pending') continue;
    const template = draft.get('template', `${task.service}/${task.template}`)?.template;
    const { nanoCpus, memoryBytes } = reservationsOf(template);
    const fits = constraintsOf(template)
      .map(parseConstraint)
      .every((constraint) => satisfies(node, constraint));
    const generic = { all: node.description?.resources.generic ?? [], given: task.generic ?? [] };
    const hasGeneric = generic.given.length === 0 || pool.choose(generic.all, generic.given) !== undefined;
    if (hasGeneric && fits && nanoCpus <= left.nanoCpus && memoryBytes <= left.memoryBytes) {
      left.nanoCpus -= nanoCpus;
      left.memoryBytes -= memoryBytes;
      pool.take(generic.given, 1);
      continue;
    }
    const message = 'task rejected by constraint enforcer';
    turn.end(draft, task, 'rejected', message, 'assigned node no longer meets constraints');
    services.add(task.service);
  }
  return services;
}
