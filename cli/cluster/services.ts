import * as cluster from '@gantry/client/cluster.ts';

import { command, MANY } from '../command-line/command.ts';
import { filtersOf } from '../command-line/values.ts';
import { each } from '../each.ts';
import { printList } from '../output/format.ts';
import { shortId } from '../output/human.ts';
import { labelsText } from '../output/labels.ts';
import { LIST_FLAGS, OBJECT_FORMAT, wantsIds } from '../output/list-flags.ts';
import { printInspected } from '../system/inspect.ts';
import { printTasks, TASK_LIST } from './task-rows.ts';

const TITLES = {
  ID: 'ID',
  Name: 'NAME',
  Mode: 'MODE',
  Replicas: 'REPLICAS',
  Image: 'IMAGE',
  Ports: 'PORTS',
  Update: 'UPDATE',
  Labels: 'LABELS',
};

export const listServices = command({
  words: '',
  count: [0, 0],
  flags: LIST_FLAGS,
  about: `Fields of templates: .${Object.keys(TITLES).join(' .')}`,
  run: async ({ connection }, _words, flags) => {
    const services = await cluster.listServices(connection, { filters: filtersOf(flags.filter) });
    if (wantsIds(flags)) {
      for (const { ID } of services) console.log(shortId(ID));
      return;
    }
    const [nodes, tasks] = await Promise.all([cluster.listNodes(connection), cluster.listTasks(connection)]);
    const down = new Set(nodes.filter(({ Status }) => Status.State === 'down').map(({ ID }) => ID));
    const ofService = Map.groupBy(
      tasks.filter(({ NodeID }) => NodeID === undefined || !down.has(NodeID)),
      ({ ServiceID }) => ServiceID,
    );
    const rows = services.map((service) => ({
      ID: shortId(service.ID),
      Name: service.Spec.Name,
      Mode: modeOf(service),
      Replicas: replicasOf(service, ofService.get(service.ID) ?? []),
      Image: service.Spec.TaskTemplate.ContainerSpec.Image,
      Ports: (service.Endpoint.Ports ?? [])
        .filter(({ PublishMode }) => PublishMode !== 'host') // those are the tasks'
        .map(({ PublishedPort, TargetPort, Protocol }) => `*:${PublishedPort}->${TargetPort}/${Protocol}`)
        .join(', '),
      Update: service.UpdateStatus?.Message ?? '',
      Labels: labelsText(service.Spec.Labels ?? {}),
    }));
    const columns = ['ID', 'Name', 'Mode', 'Replicas', 'Image', 'Ports'];
    await printList({ titles: TITLES, columns, rows }, flags.format);
  },
});

export const inspectServices = command({
  words: 'SERVICE [SERVICE...]',
  count: [1, MANY],
  flags: OBJECT_FORMAT,
  offers: 'service',
  run: async ({ connection }, refs, { format }) => {
    await printInspected(refs, async (ref) => await cluster.inspectService(connection, ref), format);
  },
});

export const serviceTasks = command({
  words: 'SERVICE [SERVICE...]',
  count: [1, MANY],
  flags: TASK_LIST,
  offers: 'service',
  run: async ({ connection }, refs, flags) => {
    await printTasks(connection, { service: refs }, flags);
  },
});

export const removeServices = command({
  words: 'SERVICE [SERVICE...]',
  count: [1, MANY],
  flags: {},
  offers: 'service',
  run: async ({ connection }, refs) => {
    await each(refs, async (ref) => {
      await cluster.removeService(connection, ref);
      console.log(ref);
    });
  },
});

/** How many tasks run, and how many are to run. */
function replicasOf({ Spec, JobStatus }: cluster.ServiceWire, tasks: readonly cluster.TaskWire[]): string {
  if (JobStatus !== undefined) return completionsOf({ Spec, JobStatus }, tasks);
  const wanted = tasks.filter(({ DesiredState }) => DesiredState === 'running');
  const running = wanted.filter(({ Status }) => Status.State === 'running').length;
  return `${running}/${Spec.Mode?.Global === undefined ? (Spec.Mode?.Replicated?.Replicas ?? 1) : wanted.length}`;
}

/** As docker's command line shows jobs: `1/2 (3/5 completed)`. */
function completionsOf(
  { Spec, JobStatus }: Pick<cluster.ServiceWire, 'Spec' | 'JobStatus'>,
  tasks: readonly cluster.TaskWire[],
): string {
  const own = tasks.filter(({ JobIteration }) => JobIteration?.Index === JobStatus?.JobIteration.Index);
  const count = (state: string): number => own.filter(({ Status }) => Status.State === state).length;
  const completed = count('complete');
  const wanted = own.filter(({ DesiredState }) => DesiredState === 'complete').length;
  const { MaxConcurrent = wanted - completed, TotalCompletions = wanted } = Spec.Mode?.ReplicatedJob ?? {};
  return `${count('running')}/${MaxConcurrent} (${completed}/${TotalCompletions} completed)`;
}

function modeOf({ Spec: { Mode } }: cluster.ServiceWire): string {
  if (Mode?.ReplicatedJob !== undefined) return 'replicated job';
  if (Mode?.GlobalJob !== undefined) return 'global job';
  return Mode?.Global === undefined ? 'replicated' : 'global';
}
