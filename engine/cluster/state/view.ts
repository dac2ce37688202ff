import type { Kind, Records, Stored } from './records.ts';

/** The records as a reader sees them: the committed ones, or a draft over them. */
export type View = {
  get<K extends Kind>(kind: K, id: string): Stored<K> | undefined;
  all<K extends Kind>(kind: K): IteratorObject<Stored<K>>;
  tasksOf(service: string): IteratorObject<Stored<'task'>>;
  tasksOn(node: string): IteratorObject<Stored<'task'>>;
};

/** One record put, or deleted where it has none. */
export type Change = { [K in Kind]: Readonly<{ kind: K; id: string; record: Records[K] | undefined }> }[Kind];

/** The only record of the cluster itself. */
export function clusterOf(view: View): Stored<'cluster'> {
  const cluster = view.get('cluster', '');
  if (cluster === undefined) throw new Error('the state has no record of the cluster');
  return cluster;
}
