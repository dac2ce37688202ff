import { parseConstraint, satisfies } from '../scheduler/constraint.ts';
import { constraintsOf } from '../state/defaults.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';
import { finishedOf, wantedOf, type Places } from './places.ts';

type Service = Stored<'service'>;

/** Slots that a replicated service should have: those in use, and the lowest free ones up to its number. */
export function replicatedPlaces(service: Service, places: Places): ReadonlySet<string> {
  const { mode } = service.spec;
  const count = mode.kind === 'replicated' ? mode.replicas : 0;
  const used = [...places]
    .filter(([, tasks]) => wantedOf(tasks) !== undefined || finishedOf(service, tasks) !== undefined)
    .map(([place, tasks]) => ({ place, task: wantedOf(tasks) }));
  if (used.length > count) return new Set(dropSurplus(used, count));
  const wanted = new Set(used.map(({ place }) => place));
  for (let slot = 1; wanted.size < count; slot += 1) wanted.add(String(slot));
  return wanted;
}

type Slot = Readonly<{ place: string; task: Stored<'task'> | undefined }>;

/** Removes surplus slots: first those that do not run, then from the nodes that have most of them. */
function dropSurplus(slots: readonly Slot[], count: number): string[] {
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

/** Nodes that should run a task of a global service. A paused node keeps its task and gets no new one. */
export function globalPlaces(view: View, service: Service, having: Places): ReadonlySet<string> {
  const record = view.get('template', `${service.id}/${service.template}`);
  const constraints = constraintsOf(record?.template).map(parseConstraint);
  const nodes = view.all('node').filter((node) => {
    const { state } = node.status;
    if (state === 'down' || node.spec.availability === 'drain') return false;
    if (!constraints.every((constraint) => satisfies(node, constraint))) return false;
    const isNew = state !== 'ready' || node.spec.availability === 'pause';
    return !isNew || wantedOf(having.at(node.id)) !== undefined;
  });
  return new Set(nodes.map(({ id }) => id));
}
