import { hasTemplates } from '../services/task-template/expansion.ts';
import { endpointOf } from '../state/defaults.ts';
import type { Stored } from '../state/records.ts';
import { compareStates, shownSlot } from '../state/task-states.ts';
import { clusterOf, type View } from '../state/view.ts';
import type { NodeTemplate, TasksMessage } from '../wire/task-messages.ts';

type Sent = TasksMessage['tasks'][number];

/** Whether the task is its node's to run: before that, the scheduler's. */
export function isAssigned({ node, status }: Stored<'task'>): boolean {
  return node !== '' && compareStates(status.state, 'assigned') >= 0;
}

/** A task for its node; the credentials of its registry only until the image is there. */
export function assignmentOf(view: View, task: Stored<'task'>): Sent {
  const { id, desired, addresses, status } = task;
  const service = view.get('service', task.service);
  const pulls = service?.registryAuth !== undefined && compareStates(status.state, 'ready') < 0;
  return {
    assignment: {
      id,
      service: task.service,
      serviceName: service?.spec.name ?? '',
      slot: shownSlot(task),
      // A node runs each task to its end; earlier versions know no other word.
      desired: desired === 'complete' ? 'running' : desired,
      template: templateKey(task),
      addresses: [...addresses],
      ...(task.generic === undefined ? {} : { generic: task.generic }),
    },
    state: status.state,
    ...(pulls ? { auth: service.registryAuth } : {}),
  };
}

export function templateKey({ service, template }: Stored<'task'>): string {
  return `${service}/${template}`;
}

/** Undefined where the template is gone: with its last wanted task. */
export function nodeTemplate(view: View, key: string): NodeTemplate | undefined {
  const record = view.get('template', key);
  if (record === undefined) return undefined;
  const { container, resources, logDriver } = record.template;
  const ports = endpointOf(record)
    .ports.filter(({ mode }) => mode === 'host')
    .map(({ protocol, targetPort, publishedPort }) => ({ protocol, targetPort, publishedPort }));
  const driver = logDriver ?? clusterOf(view).spec.logDriver;
  return {
    container,
    ...(resources === undefined ? {} : { resources }),
    ...(driver === undefined ? {} : { logDriver: driver }),
    networks: [...record.networks],
    ...(ports.length === 0 ? {} : { ports }),
    ...(hasTemplates(container) ? { serviceLabels: view.get('service', record.service)?.spec.labels ?? {} } : {}),
  };
}
