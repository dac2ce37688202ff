import type { TaskTemplate } from '../../state/task-template.ts';
import { filled, omitEmpty } from '../omit-empty.ts';
import { presentContainer } from './container.ts';
import { presentPlacement } from './placement.ts';
import { presentResources } from './resources.ts';

/** The specification's "TaskTemplate", of a service and of a task. */
export function presentTaskTemplate(template: TaskTemplate): object {
  const { container, resources, restart, logDriver, forceUpdate } = template;
  return {
    ContainerSpec: presentContainer(container),
    ...omitEmpty({
      Resources: resources && presentResources(resources),
      RestartPolicy: restart && {
        Condition: restart.condition,
        ...omitEmpty({ Delay: restart.delayNs }),
        MaxAttempts: restart.maxAttempts,
        ...omitEmpty({ Window: restart.windowNs }),
      },
      Placement: presentPlacement(template),
      LogDriver: logDriver && { Name: logDriver.name, ...filled({ Options: logDriver.options }) },
    }),
    ForceUpdate: forceUpdate ?? 0,
  };
}
