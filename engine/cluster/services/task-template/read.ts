import { EngineError, refuseIf } from '../../../lib/errors.ts';
import type { TaskTemplate } from '../../state/task-template.ts';
import { omitEmpty } from '../omit-empty.ts';
import { refuseArgument } from '../refuse-argument.ts';
import { checkContainer, readContainer } from './container.ts';
import { checkConstraints, readPlacement } from './placement.ts';
import { readResources } from './resources.ts';
import type { TaskTemplateBody } from './schema.ts';

/** The task template of a service, checked; refusals have dockerd's words. */
export function readTaskTemplate(body: TaskTemplateBody): TaskTemplate {
  const { ContainerSpec, LogDriver, Resources, RestartPolicy, Placement, ForceUpdate = 0 } = body;
  checkRuntime(body);
  if (ContainerSpec === undefined || ContainerSpec === null) {
    throw new EngineError('invalid', 'mismatched Runtime and *Spec fields');
  }
  // In the order in which dockerd checks.
  const container = readContainer(ContainerSpec);
  const restart = RestartPolicy ? readRestart(RestartPolicy) : undefined;
  const resources = Resources ? readResources(Resources) : undefined;
  refuseArgument((restart?.delayNs ?? 0) < 0, 'TaskSpec: restart-delay cannot be negative');
  refuseArgument((restart?.windowNs ?? 0) < 0, 'TaskSpec: restart-window cannot be negative');
  if (Placement) checkConstraints(Placement);
  return {
    container: checkContainer(container, ContainerSpec),
    ...omitEmpty({
      logDriver: LogDriver && { name: LogDriver.Name ?? '', options: LogDriver.Options ?? {} },
      resources,
      restart,
    }),
    ...(Placement ? readPlacement(Placement) : {}),
    ...(ForceUpdate === 0 ? {} : { forceUpdate: ForceUpdate }),
  };
}

/** Services run containers only: a plugin is each node's own. */
function checkRuntime({ Runtime = '', PluginSpec, NetworkAttachmentSpec }: TaskTemplateBody): void {
  if (Runtime === 'plugin') {
    throw new EngineError('notImplemented', 'services of the runtime type "plugin" are not implemented');
  }
  refuseIf(Runtime !== '' && Runtime !== 'container', 'unsupported runtime');
  refuseIf(Boolean(PluginSpec) || Boolean(NetworkAttachmentSpec), 'mismatched Runtime and *Spec fields');
}

function readRestart(policy: NonNullable<TaskTemplateBody['RestartPolicy']>): NonNullable<TaskTemplate['restart']> {
  const condition = policy.Condition || 'any';
  if (condition !== 'none' && condition !== 'on-failure' && condition !== 'any') {
    throw new EngineError('invalid', `invalid RestartCondition: "${condition}"`);
  }
  return {
    condition,
    maxAttempts: policy.MaxAttempts ?? 0,
    ...omitEmpty({ delayNs: policy.Delay, windowNs: policy.Window }),
  };
}
