import type { UpdateConfig } from '@gantry/engine/cluster/state/service-spec.ts';

import { SimulatedCluster } from './simulated-cluster.ts';

export const FOUR = { mode: { kind: 'replicated', replicas: 4 } } as const;
export const OLD = { image: 'old' };
export const NEW = { image: 'new' };
export const config = (over: Partial<UpdateConfig>): UpdateConfig => ({
  ...{ parallelism: 1, delayNs: 0, failureAction: 'pause' },
  ...over,
});

/** Images of the tasks that run and are to run. */
export function running(cluster: SimulatedCluster): string {
  const images = cluster.running('web').map((task) => {
    return cluster.replica.get('template', `web/${task.template}`)!.template.container.image;
  });
  return images.toSorted().join(' ');
}

/** The state of the service's last update. */
export function status(cluster: SimulatedCluster): { state?: string; message?: string } {
  return cluster.replica.get('service', 'web')?.updateStatus ?? {};
}

/** A service whose four tasks run for a minute before its image changes. */
export function updated(update: UpdateConfig, over: object = {}, template: object = {}): SimulatedCluster {
  const cluster = new SimulatedCluster();
  for (const id of ['a', 'b', 'c']) cluster.node(id);
  cluster.service('web', { ...FOUR, update, template: { ...template, ...OLD }, ...over });
  cluster.settle();
  cluster.pass(60);
  cluster.service('web', { ...FOUR, update, template: { ...template, ...NEW }, ...over });
  return cluster;
}
