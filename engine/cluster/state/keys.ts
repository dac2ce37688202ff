import type { Kind } from './records.ts';

const KINDS: ReadonlySet<string> = new Set<Kind>([
  'node',
  'service',
  'template',
  'task',
  'network',
  'restart',
  'attachment',
  'secret',
  'config',
]);

/** Under its lease: who leads. */
export const LEADER_KEY = 'leader';
/** The number of the leader's last batch. */
export const SEQUENCE_KEY = 'seq';
const CLUSTER_KEY = 'cluster';

/** The key of a record in etcd: `task/<id>`; that of the cluster has no id. */
export function keyOf(kind: Kind, id: string): string {
  return kind === 'cluster' ? CLUSTER_KEY : `${kind}/${id}`;
}

/** Undefined for keys that hold no record. */
export function recordOfKey(key: string): { kind: Kind; id: string } | undefined {
  if (key === CLUSTER_KEY) return { kind: 'cluster', id: '' };
  const slash = key.indexOf('/');
  const kind = key.slice(0, slash);
  return slash > 0 && KINDS.has(kind) ? { kind: kind as Kind, id: key.slice(slash + 1) } : undefined;
}
