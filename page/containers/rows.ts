import type { Summary } from '@gantry/client/containers.ts';

import type { Containers } from './containers.ts';
import { nameOf } from './names.ts';
import type { Usage } from './usage.ts';

export type Row =
  | Readonly<{ kind: 'group'; project: string; members: readonly Summary[] }>
  | Readonly<{ kind: 'container'; container: Summary }>;
export type Order = 'name' | 'cpu' | 'memory' | 'age';
export type Shown = 'all' | 'running' | 'stopped' | 'unhealthy';
type View = Readonly<{ search: string; shown: Shown; order: Order; closed: ReadonlySet<string> }>;

const PROJECT = 'com.docker.compose.project';
const CLUSTER_SERVICE = 'com.docker.swarm.service.name';
export const SERVICE = 'com.docker.compose.service';

/** The rows of the table: containers of a compose project or of a service below its name, the others last. */
export function rowsOf(all: Containers, usages: ReadonlyMap<string, Usage>, view: View): Row[] {
  const fitting = [...all.values()].filter((one) => fits(one, view)).toSorted(comparing(view.order, usages));
  const projects = Map.groupBy(fitting, groupOf);
  const names = [...projects.keys()].filter((name) => name !== '').toSorted((a, b) => a.localeCompare(b));
  const alone = projects.get('') ?? [];
  const ofGroup = (project: string, members: readonly Summary[]): Row[] => [
    { kind: 'group', project, members },
    ...(view.closed.has(project) ? [] : members.map(asRow)),
  ];
  const grouped = names.flatMap((project) => ofGroup(project, projects.get(project) ?? []));
  if (grouped.length === 0) return alone.map(asRow);
  return alone.length === 0 ? grouped : [...grouped, ...ofGroup('', alone)];
}

function groupOf({ Labels }: Summary): string {
  return Labels[PROJECT] ?? Labels[CLUSTER_SERVICE] ?? '';
}

function asRow(container: Summary): Row {
  return { kind: 'container', container };
}

function fits(container: Summary, { search, shown }: View): boolean {
  const { State, Health, Image, Id } = container;
  const isAlive = State === 'running' || State === 'paused' || State === 'restarting';
  if (shown === 'running' && !isAlive) return false;
  if (shown === 'stopped' && isAlive) return false;
  if (shown === 'unhealthy' && Health?.Status !== 'unhealthy') return false;
  const text = `${nameOf(container)} ${Image} ${Id} ${groupOf(container)} ${State}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function comparing(order: Order, usages: ReadonlyMap<string, Usage>): (one: Summary, other: Summary) => number {
  const use = (field: 'cpu' | 'memory') => (one: Summary, other: Summary) =>
    (usages.get(other.Id)?.[field] ?? -1) - (usages.get(one.Id)?.[field] ?? -1) || byName(one, other);
  switch (order) {
    case 'name':
      return byName;
    case 'age':
      return (one, other) => other.Created - one.Created || byName(one, other);
    case 'cpu':
    case 'memory':
      return use(order);
  }
}

function byName(one: Summary, other: Summary): number {
  return nameOf(one).localeCompare(nameOf(other));
}
