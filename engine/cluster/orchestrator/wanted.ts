import { parseConstraint, satisfies } from '../scheduler/constraint.ts';
import { constraintsOf } from '../state/defaults.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';
import { finishedOf, Places, wantedOf } from './places.ts';

type Service = Stored<'service'>;

/** The slots of a replicated service, as many as it wants: the lowest free ones are added. */
export function replicatedPlaces(service: Service, places: Places): ReadonlySet<string> {
  const { mode } = service.spec;
  const count = mode.kind === 'replicated' ? mode.replicas : 0;
  const used = [...places]
    .filter(([, tasks]) => wantedOf(tasks) !== undefined || finishedOf(service, tasks) !== undefined)
    .map(([place, tasks]) => ({ place, task: wantedOf(tasks) }));
  if (used.length > count) return new Set(kept(used, count));
  const wanted = new Set(used.map(({ place }) => place));
  for (let slot = 1; wanted.size < count; slot += 1) wanted.add(String(slot));
  return wanted;
}

type Slot = Readonly<{ place: string; task: Stored<'task'> | undefined }>;

/** Removes surplus slots: first those that do not run, then from the nodes that have most of them. */
function kept(slots: readonly Slot[], count: number): string[] {
  const left = slots.toSorted((a, b) => Number(runs(b)) - Number(runs(a)) || Number(a.place) - Number(b.place));
  while (left.length > count && !runs(left.at(-1)!)) left.pop();
  const byNode = [...Map.groupBy(left, ({ task }) => task?.node ?? '').values()];
  for (let many = left.length; many > count; many -= 1) {
    byNode.reduce((most, other) => (other.length > most.length ? other : most)).pop();
  }
  return byNode.flat().map(({ place }) => place);
}

function runs({ task }: Slot): boolean {
  return task?.status.state === 'running' && task.desired === 'running';
}

/** The nodes on which a global service has its task. A paused node keeps what it has, and gets nothing new. */
export function globalPlaces(view: View, service: Service): ReadonlySet<string> {
  const record = view.get('template', `${service.id}/${service.template}`);
  const constraints = constraintsOf(record?.template).map(parseConstraint);
  const having = new Places(view.tasksOf(service.id));
  const nodes = view.all('node').filter((node) => {
    const { state } = node.status;
    if (state === 'down' || node.spec.availability === 'drain') return false;
    if (!constraints.every((constraint) => satisfies(node, constraint))) return false;
    const isNew = state !== 'ready' || node.spec.availability === 'pause';
    return !isNew || wantedOf(having.at(node.id)) !== undefined;
  });
  return new Set(nodes.map(({ id }) => id));
}
