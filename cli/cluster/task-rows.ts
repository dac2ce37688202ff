import * as cluster from '@gantry/client/cluster.ts';
import type { Connection } from '@gantry/client/connection.ts';

import type { Given } from '../command-line/command.ts';
import { filtersOf } from '../command-line/values.ts';
import { printList } from '../output/format.ts';
import { ago, shortId } from '../output/human.ts';
import { LIST_FLAGS, NO_TRUNC, wantsIds } from '../output/list-flags.ts';

/** The flags of the commands that list tasks. */
export const TASK_LIST = {
  ...LIST_FLAGS,
  'no-resolve': { kind: 'boolean', help: 'Ids instead of names' },
  'no-trunc': NO_TRUNC,
} as const;

const TITLES = {
  ID: 'ID',
  Name: 'NAME',
  Image: 'IMAGE',
  Node: 'NODE',
  DesiredState: 'DESIRED STATE',
  CurrentState: 'CURRENT STATE',
  Error: 'ERROR',
  Ports: 'PORTS',
};

/** Prints the tasks of services or nodes, slot by slot, the newest first. Reasons of failures are whole. */
export async function printTasks(
  connection: Connection,
  of: Readonly<Record<string, readonly string[]>>,
  flags: Given<typeof TASK_LIST>,
): Promise<void> {
  const given = JSON.parse(filtersOf(flags.filter) ?? '{}') as Record<string, string[]>;
  const filters = JSON.stringify({ ...given, ...of });
  const tasks = await cluster.listTasks(connection, { filters });
  const names = flags['no-resolve'] ? NO_NAMES : await namesIn(connection);
  const sorted = tasks.toSorted(
    (a, b) =>
      serviceOf(a, names).localeCompare(serviceOf(b, names)) ||
      placeOf(a).localeCompare(placeOf(b), 'en', { numeric: true }) ||
      (a.CreatedAt < b.CreatedAt ? 1 : -1),
  );
  const idOf = (id: string): string => (flags['no-trunc'] ? id : shortId(id));
  if (wantsIds(flags)) {
    for (const { ID } of sorted) console.log(idOf(ID));
    return;
  }
  const rows = sorted.map((task, at) => ({
    ID: idOf(task.ID),
    Name: indented(task, sorted[at - 1], names, flags.format),
    Image: task.Spec.ContainerSpec?.Image ?? '',
    Node: nodeOf(task, names),
    DesiredState: capital(task.DesiredState),
    CurrentState: `${capital(task.Status.State)} ${ago(Date.parse(task.Status.Timestamp) / 1000).toLowerCase()}`,
    Error: task.Status.Err ?? '',
    Ports: '',
  }));
  const columns = ['ID', 'Name', 'Image', 'Node', 'DesiredState', 'CurrentState', 'Error'];
  await printList({ titles: TITLES, columns, rows }, flags.format);
}

type Names = Readonly<{ services: ReadonlyMap<string, string>; nodes: ReadonlyMap<string, string> }>;
const NO_NAMES: Names = { services: new Map(), nodes: new Map() };

async function namesIn(connection: Connection): Promise<Names> {
  const [services, nodes] = await Promise.all([cluster.listServices(connection), cluster.listNodes(connection)]);
  return {
    services: new Map(services.map(({ ID, Spec }) => [ID, Spec.Name])),
    nodes: new Map(nodes.map(({ ID, Description }) => [ID, Description.Hostname ?? ID])),
  };
}

/** As in docker, earlier tasks of the same place stand below it. */
function indented(
  task: cluster.TaskWire,
  before: cluster.TaskWire | undefined,
  names: Names,
  format: string | undefined,
): string {
  const name = `${serviceOf(task, names)}.${placeOf(task)}`;
  const isTable = format === undefined || format === '' || format === 'table';
  const isSame = before?.ServiceID === task.ServiceID && placeOf(before) === placeOf(task);
  return isTable && isSame ? ` \\_ ${name}` : name;
}

function serviceOf({ ServiceID }: cluster.TaskWire, { services }: Names): string {
  return services.get(ServiceID) ?? ServiceID;
}

/** The slot, or the node of a global service's task. */
function placeOf({ Slot, NodeID }: cluster.TaskWire): string {
  return Slot === undefined ? (NodeID ?? '') : String(Slot);
}

function nodeOf({ NodeID }: cluster.TaskWire, { nodes }: Names): string {
  return NodeID === undefined ? '' : (nodes.get(NodeID) ?? NodeID);
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
