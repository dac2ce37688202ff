import { constraintsOf, hostPortsOf } from '../state/defaults.ts';
import { featuresOf } from '../state/features.ts';
import type { NodeRecord, TemplateRecord } from '../state/records.ts';
import type { Placement } from '../state/task-template.ts';
import { parseConstraint, satisfies } from './constraint.ts';
import { takenBy, type NodeLoad } from './node-load.ts';

/** A condition on nodes for the tasks of a template; `reason` is for the error of a task that finds no node. */
type Filter = Readonly<{ reason: (nodes: number) => string; admits: (load: NodeLoad) => boolean }>;

/** The filters of a template, in the order in which they are asked: the first that refuses a node is reported. */
export function filtersOf(record: TemplateRecord): readonly Filter[] {
  const reservations = takenBy(record);
  const parsed = constraintsOf(record.template).map(parseConstraint);
  const plugins = pluginsOf(record);
  const ports = hostPortsOf(record);
  const features = featuresOf(record.template);
  const { platforms = [], maxReplicas = 0 } = record.template.placement ?? {};
  return [
    {
      reason: (nodes) => `${formatCount(nodes)} not available for new tasks`,
      admits: ({ node }) => node.status.state === 'ready' && node.spec.availability === 'active',
    },
    {
      reason: (nodes) => `insufficient resources on ${formatCount(nodes)}`,
      admits: (load) => load.has(reservations),
    },
    {
      reason: (nodes) => `missing plugin on ${formatCount(nodes)}`,
      admits: ({ node }) =>
        plugins.every(({ type, name }) =>
          node.description?.engine.plugins.some((plugin) => plugin.type === type && plugin.name === name),
        ),
    },
    {
      reason: (nodes) => `too old for the settings of the task: ${formatCount(nodes)}`,
      admits: ({ node }) => features.every((feature) => node.description?.features?.includes(feature) === true),
    },
    {
      reason: (nodes) => `scheduling constraints not satisfied on ${formatCount(nodes)}`,
      admits: ({ node }) => parsed.every((constraint) => satisfies(node, constraint)),
    },
    {
      reason: (nodes) => `unsupported platform on ${formatCount(nodes)}`,
      admits: ({ node }) => platforms.length === 0 || platforms.some((platform) => runs(node, platform)),
    },
    {
      reason: (nodes) => `host-mode port already in use on ${formatCount(nodes)}`,
      admits: (load) => ports.every((port) => !load.publishes(port)),
    },
    {
      reason: () => 'max replicas per node limit exceed',
      admits: (load) => maxReplicas === 0 || load.tasksOf(record.service) < maxReplicas,
    },
  ];
}

/** The nodes that all filters admit, and why the others were refused. */
export function suitable(
  loads: Iterable<NodeLoad>,
  filters: readonly Filter[],
): { nodes: NodeLoad[]; refusal: string } {
  const nodes: NodeLoad[] = [];
  const refused = filters.map(() => 0);
  for (const load of loads) {
    const at = filters.findIndex(({ admits }) => !admits(load));
    if (at === -1) nodes.push(load);
    else refused[at]! += 1;
  }
  return { nodes, refusal: refusalOf(filters, refused) };
}

/** The error of a task without a node: `no suitable node (…)`, the commonest reason first. */
function refusalOf(filters: readonly Filter[], refused: readonly number[]): string {
  const reasons = refused
    .map((nodes, at) => ({ nodes, at }))
    .filter(({ nodes }) => nodes > 0)
    .toSorted((a, b) => b.nodes - a.nodes)
    .map(({ nodes, at }) => filters[at]!.reason(nodes));
  return reasons.length === 0 ? 'no suitable node' : `no suitable node (${reasons.join('; ')})`;
}

function formatCount(nodes: number): string {
  return nodes === 1 ? '1 node' : `${nodes} nodes`;
}

type Platform = NonNullable<Placement['platforms']>[number];

/** An empty field of a wanted platform stands for any. */
function runs({ description }: NodeRecord, wanted: Platform): boolean {
  const { architecture = '', os = '' } = description?.platform ?? {};
  return isLike(os, wanted.os) && isLike(goArchitectureOf(architecture), goArchitectureOf(wanted.architecture));
}

function isLike(own: string, wanted: string): boolean {
  return wanted === '' || own.toLowerCase() === wanted.toLowerCase();
}

/** Images name their architecture as Go does, nodes as the kernel does. */
function goArchitectureOf(architecture: string): string {
  return GO_ARCHITECTURES.get(architecture) ?? architecture;
}

const GO_ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'amd64'],
  ['aarch64', 'arm64'],
]);

/** Volume and log drivers of plugins; the built-in ones are everywhere. */
function pluginsOf({ template }: TemplateRecord): { type: string; name: string }[] {
  const volumes = (template.container.mounts ?? []).flatMap(({ volume }) => {
    const name = volume?.driver?.name ?? '';
    return name === '' || name === 'local' ? [] : [{ type: 'Volume', name }];
  });
  const log = template.logDriver?.name ?? '';
  return log === '' || log === 'none' ? volumes : [...volumes, { type: 'Log', name: log }];
}
