import type { NodeWire, ServiceWire, TaskWire } from '@gantry/client/cluster.ts';
import type { Info } from '@gantry/client/system.ts';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';

import { call, filters } from '../api/request.ts';
import { List } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import { countText } from '../parts/texts.ts';
import { NodeControls, ServiceControls } from './controls.tsx';
import { Matrix } from './matrix.tsx';

/** Nodes tell their events to themselves alone: what others do is read. */
const RELOAD_MS = 2000;

type Loaded = Readonly<{ nodes: readonly NodeWire[]; services: readonly ServiceWire[]; tasks: readonly TaskWire[] }>;

/** Nodes and services of the cluster, and why tasks wait or failed. */
export function ClusterScreen(): JSX.Element {
  const { value, problem, reload } = useLoad(loadCluster, 'cluster', (type) =>
    ['service', 'node', 'container'].includes(type),
  );
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  if (problem !== undefined) return <p class="empty">{problem}</p>;
  if (value === undefined) return <p class="empty">Loading…</p>;
  if (value === 'none') {
    return <p class="empty">This machine is not a manager of a cluster; gantry swarm init makes one.</p>;
  }
  return <Overview loaded={value} reload={reload} />;
}

function Overview({ loaded: { nodes, services, tasks }, reload }: { loaded: Loaded; reload: () => void }): JSX.Element {
  const names = new Map(services.map(({ ID, Spec }) => [ID, Spec.Name]));
  const machines = new Map(nodes.map(({ ID, Description }) => [ID, Description.Hostname]));
  const wanted = tasks.filter(({ DesiredState }) => DesiredState === 'running');
  const troubled = tasks.filter(({ Status, DesiredState }) => isTroubled(Status.State, DesiredState));
  const running = (fits: (task: TaskWire) => boolean): number =>
    wanted.filter((task) => fits(task) && task.Status.State === 'running').length;
  return (
    <section class="screen">
      <div class="bar">
        <h1>Cluster</h1>
        <span class="soft">
          {countText(nodes.length, 'node')}, {countText(services.length, 'service')}, {countText(wanted.length, 'task')}
        </span>
      </div>
      <div class="scroller padded">
        <h2>Services</h2>
        <List
          head={['Service', 'Tasks running', 'Image', 'Rollout', 'Change']}
          rows={services.map((service) => {
            const { ID, Spec, UpdateStatus } = service;
            return [
              Spec.Name,
              `${running(({ ServiceID }) => ServiceID === ID)} of ${wanted.filter(({ ServiceID }) => ServiceID === ID).length}`,
              Spec.TaskTemplate.ContainerSpec?.Image ?? '',
              UpdateStatus?.State ?? '',
              <ServiceControls key={ID} service={service} reload={reload} />,
            ];
          })}
          none="No services"
        />
        <h2>Services on nodes</h2>
        <Matrix nodes={nodes} services={services} tasks={wanted} />
        <h2>Nodes</h2>
        <List
          head={['Node', 'Role', 'State', 'Availability', 'Tasks running', 'Change']}
          rows={nodes.map((node) => {
            const { ID, Spec, Status, Description } = node;
            return [
              Description.Hostname,
              Spec.Role,
              Status.State,
              Spec.Availability,
              running(({ NodeID }) => NodeID === ID),
              <NodeControls key={ID} node={node} reload={reload} />,
            ];
          })}
          none="No nodes"
        />
        <h2>Tasks that wait or failed</h2>
        <List
          head={['Task', 'Node', 'State', 'Reason']}
          rows={troubled.map(({ ServiceID, Slot, NodeID, Status }) => [
            `${names.get(ServiceID ?? '') ?? ''}.${Slot ?? ''}`,
            machines.get(NodeID ?? '') ?? '',
            Status.State,
            Status.Err ?? Status.Message ?? '',
          ])}
          none="None"
        />
      </div>
    </section>
  );
}

function isTroubled(state: string, desired: string): boolean {
  return state === 'failed' || state === 'rejected' || (desired === 'running' && state !== 'running');
}

async function loadCluster(): Promise<Loaded | 'none'> {
  const { Swarm } = await call<Info>('GET', '/info');
  if (Swarm.LocalNodeState !== 'active' || !Swarm.ControlAvailable) return 'none';
  const [nodes, services, tasks] = await Promise.all([
    call<NodeWire[]>('GET', '/nodes'),
    call<ServiceWire[]>('GET', '/services'),
    call<TaskWire[]>('GET', '/tasks', { query: filters({}) }),
  ]);
  return { nodes, services, tasks };
}
