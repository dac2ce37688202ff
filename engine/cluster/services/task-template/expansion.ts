import { TemplateError } from '@gantry/template/error.ts';
import { compileTemplate } from '@gantry/template/run.ts';

import { EngineError } from '../../../lib/errors.ts';
import type { TaskContainer, TaskMount } from '../../state/task-template.ts';
import { refuseArgument } from '../refuse-argument.ts';

/** The values of a task that templates name. */
export type TemplateContext = Readonly<{
  Service: Readonly<{ ID: string; Name: string; Labels: Readonly<Record<string, string>> }>;
  Node: Readonly<{ ID: string; Hostname: string; Platform: Readonly<{ Architecture: string; OS: string }> }>;
  Task: Readonly<{ ID: string; Name: string; Slot: string }>;
}>;

/** Any task, for the check of a specification: dockerd's has no labels either. */
const SOME_TASK: TemplateContext = {
  Service: { ID: 'serviceid', Name: 'servicename', Labels: {} },
  Node: { ID: 'nodeid', Hostname: 'nodehostname', Platform: { Architecture: 'x86_64', OS: 'linux' } },
  Task: { ID: 'taskid', Name: 'servicename.1.taskid', Slot: '1' },
};

/** Refuses a container with a malformed template. */
export function checkTemplates(container: TaskContainer): void {
  try {
    expandContainer(container, SOME_TASK);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    refuseArgument(true, error.message);
  }
}

/** Whether a container has a field that differs from task to task. */
export function hasTemplates({ mounts, hostname, env }: TaskContainer): boolean {
  return JSON.stringify([mounts, hostname, env]).includes('{{');
}

/** Expands the templates in mounts, host name and environment for one task. Throws `invalid`. */
export function expandContainer(container: TaskContainer, context: TemplateContext): TaskContainer {
  if (!hasTemplates(container)) return container;
  const expand = (what: string, text: string): string => expandText(`expanding ${what} failed`, text, context);
  const { mounts, hostname, env } = container;
  return {
    ...container,
    ...(mounts && { mounts: mounts.map((mount) => expandMount(mount, (text) => expand('mounts', text))) }),
    ...(hostname && { hostname: expand('hostname', hostname) }),
    ...(env && { env: env.map((variable) => expand('env', variable)) }),
  };
}

function expandMount(mount: TaskMount, expand: (text: string) => string): TaskMount {
  const { source, target, volume } = mount;
  const { labels, driver } = volume ?? {};
  const all = (texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([key, value]) => [key, expand(value)]));
  return {
    ...mount,
    ...(source && { source: expand(source) }),
    ...(target && { target: expand(target) }),
    ...(volume && {
      volume: {
        ...volume,
        ...(labels && { labels: all(labels) }),
        ...(driver && { driver: { ...driver, ...(driver.options && { options: all(driver.options) }) } }),
      },
    }),
  };
}

function expandText(failure: string, text: string, context: TemplateContext): string {
  if (!text.includes('{{')) return text;
  try {
    return compileTemplate(text)(context);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw new EngineError('invalid', `${failure}: ${JSON.stringify(text)}: ${error.message}`, { cause: error });
  }
}
