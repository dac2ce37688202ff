import type { NodeWire, ServiceWire, TaskWire } from '@gantry/client/cluster.ts';
import type { JSX } from 'preact';

import { List } from '../parts/list.tsx';

type Props = { nodes: readonly NodeWire[]; services: readonly ServiceWire[]; tasks: readonly TaskWire[] };

/** Where the tasks of each service are: a row per service, a column per node, and one for tasks without a node. */
export function Matrix({ nodes, services, tasks }: Props): JSX.Element {
  const cell = (serviceId: string, nodeId: string): string => {
    const here = tasks.filter(({ ServiceID, NodeID = '' }) => ServiceID === serviceId && NodeID === nodeId);
    const running = here.filter(({ Status }) => Status.State === 'running').length;
    if (here.length === 0) return '';
    return running === here.length ? String(running) : `${running} of ${here.length}`;
  };
  return (
    <List
      head={['Service', ...nodes.map(({ Description }) => Description.Hostname ?? ''), 'No node yet']}
      rows={services.map(({ ID, Spec }) => [Spec.Name ?? '', ...nodes.map((node) => cell(ID, node.ID)), cell(ID, '')])}
      none="No services"
    />
  );
}
