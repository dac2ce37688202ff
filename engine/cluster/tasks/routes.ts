import type { Engine } from '../../engine.ts';
import type { AddRoutes } from '../../http/route-table.ts';
import { parseFilters } from '../../http/values/filters.ts';
import { sendLogs, ServiceLogsQuery } from '../logs/answer.ts';
import { findTask } from './find.ts';
import { listTasks, TASK_FILTERS } from './list.ts';
import { presentTask } from './present.ts';
import { TaskRef, TasksQuery } from './schema.ts';

/** Endpoints 77 and 78. */
export const taskRoutes =
  ({ clock, cluster }: Pick<Engine, 'clock' | 'cluster'>): AddRoutes =>
  (http) => {
    http.get('/tasks', {
      schema: { querystring: TasksQuery },
      handler: async ({ query }) => {
        const filters = parseFilters(query.filters, TASK_FILTERS);
        const { replica } = await cluster.reading();
        return listTasks(replica, filters).map((task) => presentTask(replica, task));
      },
    });

    http.get('/tasks/:ref', {
      schema: { params: TaskRef },
      handler: async ({ params }) => {
        const { replica } = await cluster.reading();
        return presentTask(replica, findTask(replica, params.ref));
      },
    });

    http.get('/tasks/:ref/logs', {
      schema: { params: TaskRef, querystring: ServiceLogsQuery },
      handler: async (request, reply) => {
        const { replica } = await cluster.reading();
        const task = findTask(replica, request.params.ref);
        const template = replica.get('template', `${task.service}/${task.template}`)?.template;
        await sendLogs({ clock, manager: cluster.manager() }, { task: task.id, template }, request, reply);
      },
    });
  };
