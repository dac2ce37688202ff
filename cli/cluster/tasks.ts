import * as cluster from '@gantry/client/cluster.ts';

import { command, MANY } from '../command-line/command.ts';
import { OBJECT_FORMAT } from '../output/list-flags.ts';
import { printInspected } from '../system/inspect.ts';
import { printTasks, TASK_LIST } from './task-rows.ts';

export const listTasks = command({
  words: '',
  count: [0, 0],
  flags: TASK_LIST,
  examples: ['gantry task ls --filter desired-state=running'],
  run: async ({ connection }, _words, flags) => await printTasks(connection, {}, flags),
});

export const inspectTasks = command({
  words: 'TASK [TASK...]',
  count: [1, MANY],
  flags: OBJECT_FORMAT,
  run: async ({ connection }, refs, { format }) => {
    await printInspected(refs, async (ref) => await cluster.inspectTask(connection, ref), format);
  },
});
