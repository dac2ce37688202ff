import * as cluster from '@gantry/client/cluster.ts';
import { info } from '@gantry/client/system.ts';

import { command, MANY, type Context } from '../command-line/command.ts';
import { filtersOf, mapOf } from '../command-line/values.ts';
import { each } from '../each.ts';
import { printList } from '../output/format.ts';
import { LIST_FLAGS, OBJECT_FORMAT, wantsIds } from '../output/list-flags.ts';
import { printInspected } from '../system/inspect.ts';
import { printTasks, TASK_LIST } from './task-rows.ts';

const TITLES = {
  ID: 'ID',
  Hostname: 'HOSTNAME',
  Status: 'STATUS',
  Availability: 'AVAILABILITY',
  ManagerStatus: 'MANAGER STATUS',
  EngineVersion: 'ENGINE VERSION',
  Address: 'ADDRESS',
  Message: 'MESSAGE',
  Self: 'SELF',
};

export const listNodes = command({
  words: '',
  count: [0, 0],
  flags: LIST_FLAGS,
  about: `Fields of templates: .${Object.keys(TITLES).join(' .')}`,
  run: async ({ connection }, _words, flags) => {
    const nodes = await cluster.listNodes(connection, { filters: filtersOf(flags.filter) });
    const sorted = nodes.toSorted((a, b) => hostOf(a).localeCompare(hostOf(b)));
    if (wantsIds(flags)) {
      for (const { ID } of sorted) console.log(ID);
      return;
    }
    const self = (await info(connection)).Swarm.NodeID;
    const isTable = flags.format === undefined || flags.format === '' || flags.format === 'table';
    const rows = sorted.map((node) => ({
      ID: isTable && node.ID === self ? `${node.ID} *` : node.ID,
      Hostname: hostOf(node),
      Status: capital(node.Status.State),
      Availability: capital(node.Spec.Availability),
      ManagerStatus: managerStatus(node),
      EngineVersion: node.Description.Engine.EngineVersion ?? '',
      Address: node.Status.Addr ?? '',
      Message: node.Status.Message ?? '',
      Self: String(node.ID === self),
    }));
    const columns = ['ID', 'Hostname', 'Status', 'Availability', 'ManagerStatus', 'EngineVersion'];
    await printList({ titles: TITLES, columns, rows }, flags.format);
  },
});

export const inspectNodes = command({
  words: 'self|NODE [NODE...]',
  count: [1, MANY],
  flags: OBJECT_FORMAT,
  offers: 'node',
  run: async (context, refs, { format }) => {
    await printInspected(refs, async (ref) => await find(context, ref), format);
  },
});

export const nodeTasks = command({
  words: '[NODE...]',
  count: [0, MANY],
  flags: TASK_LIST,
  offers: 'node',
  about: 'Without a node: the tasks of the one that is asked.',
  run: async (context, refs, flags) => {
    const nodes = await Promise.all((refs.length === 0 ? ['self'] : refs).map(async (ref) => await find(context, ref)));
    await printTasks(context.connection, { node: nodes.map(({ ID }) => ID) }, flags);
  },
});

export const updateNode = command({
  words: 'NODE',
  count: [1, 1],
  flags: {
    availability: { kind: 'text', help: 'active, pause or drain', offers: ['active', 'pause', 'drain'] },
    'label-add': { kind: 'list', value: 'NAME=VALUE', help: 'A label that it gets' },
    'label-rm': { kind: 'list', value: 'NAME', help: 'A label that it loses' },
    role: { kind: 'text', help: 'worker or manager', offers: ['worker', 'manager'] },
  },
  offers: 'node',
  run: async (context, [ref = ''], flags) => {
    await change(context, ref, (spec) => {
      const kept = Object.entries(spec.Labels).filter(([name]) => !flags['label-rm'].includes(name));
      return {
        ...spec,
        Labels: { ...Object.fromEntries(kept), ...mapOf(flags['label-add']) },
        ...(flags.availability !== undefined && { Availability: flags.availability }),
        ...(flags.role !== undefined && { Role: flags.role }),
      };
    });
    console.log(ref);
  },
});

export const promoteNodes = roleCommand('manager', 'promoted to a manager in the swarm.');
export const demoteNodes = roleCommand('worker', 'demoted in the swarm.');

export const removeNodes = command({
  words: 'NODE [NODE...]',
  count: [1, MANY],
  flags: { force: { kind: 'boolean', short: 'f', help: 'Also one that is up' } },
  offers: 'node',
  run: async ({ connection }, refs, { force }) => {
    await each(refs, async (ref) => {
      await cluster.removeNode(connection, ref, force);
      console.log(ref);
    });
  },
});

function roleCommand(role: 'worker' | 'manager', done: string): ReturnType<typeof command> {
  return command({
    words: 'NODE [NODE...]',
    count: [1, MANY],
    flags: {},
    offers: 'node',
    run: async (context, refs) => {
      await each(refs, async (ref) => {
        const isNews = await change(context, ref, (spec) => (spec.Role === role ? undefined : { ...spec, Role: role }));
        console.log(isNews ? `Node ${ref} ${done}` : `Node ${ref} is already a ${role}.`);
      });
    },
  });
}

/** Whether there was something to change. */
async function change(
  context: Context,
  ref: string,
  work: (spec: cluster.NodeSpec) => cluster.NodeSpec | undefined,
): Promise<boolean> {
  const node = await find(context, ref);
  const spec = work(node.Spec);
  if (spec !== undefined) await cluster.updateNode(context.connection, node, spec);
  return spec !== undefined;
}

async function find({ connection }: Context, ref: string): Promise<cluster.NodeWire> {
  const id = ref === 'self' ? (await info(connection)).Swarm.NodeID : ref;
  return await cluster.inspectNode(connection, id);
}

function hostOf({ Description }: cluster.NodeWire): string {
  return Description.Hostname ?? '';
}

function managerStatus({ ManagerStatus }: cluster.NodeWire): string {
  if (ManagerStatus === undefined) return '';
  return ManagerStatus.Leader === true ? 'Leader' : capital(ManagerStatus.Reachability);
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
