import { hostname, machine } from 'node:os';

import type { CreateBody } from '../../containers/schema.ts';
import { familiarReference, parseReference, withDefaultTag } from '../../images/names/reference.ts';
import { EngineError } from '../../lib/errors.ts';
import { omitEmpty } from '../services/omit-empty.ts';
import { expandContainer, type TemplateContext } from '../services/task-template/expansion.ts';
import type { TaskPort } from '../state/service-spec.ts';
import { placeOf } from '../state/task-states.ts';
import type { NodeTemplate } from '../wire/task-messages.ts';
import type { TaskNetworks } from './networks.ts';
import type { AgentTask } from './store.ts';
import { containerSettings, hostSettings, resourceSettings } from './task-settings.ts';

/** dockerd's prefix, which clients look for, and the specification's. */
const LABEL_PREFIXES = ['com.docker.swarm', 'com.engine.swarm'];

/** `<service>.<slot, or node of a global service>.<task>`. */
export function containerNameOf(task: AgentTask): string {
  return `${task.serviceName}.${placeOf(task)}.${task.id}`;
}

/** The body of a creation as a client would send it. */
export function containerBody(task: AgentTask, made: NodeTemplate, networks: TaskNetworks): CreateBody {
  const { resources, logDriver, ports } = made;
  const container = expandContainer(made.container, templateContext(task, made.serviceLabels ?? {}));
  const { image, command, args, env, dir, user } = container;
  return {
    Image: imageNameOf(image),
    Labels: { ...container.labels, ...labelsOf(task) },
    ...omitEmpty({ Env: variablesOf(task, env), WorkingDir: dir, User: user }),
    // A command replaces the image's entrypoint and its arguments.
    ...(command !== undefined && command.length > 0
      ? { Entrypoint: [...command], Cmd: [...(args ?? [])] }
      : omitEmpty({ Cmd: args !== undefined && args.length > 0 ? [...args] : undefined })),
    ...omitEmpty({ ExposedPorts: ports && exposed(ports) }),
    ...containerSettings(container),
    HostConfig: {
      ...networks.hostConfig,
      ...hostSettings(container),
      ...resourceSettings(resources),
      ...omitEmpty({
        PortBindings: ports && bindings(ports),
        LogConfig: logDriver && { Type: logDriver.name, Config: { ...logDriver.options } },
      }),
    },
    NetworkingConfig: networks.networkingConfig,
  };
}

/** With resources of the node as `DOCKER_RESOURCE_<kind>`, as dockerd names them: an amount, or names. */
function variablesOf({ generic = [] }: AgentTask, env: readonly string[] | undefined): string[] | undefined {
  const byKind = Map.groupBy(generic, ({ kind }) => kind);
  const own = [...byKind].map(([kind, resources]) => {
    const values = resources.map((one) => ('name' in one ? one.name : String(one.amount)));
    return `DOCKER_RESOURCE_${kind}=${values.join(',')}`;
  });
  return env === undefined && own.length === 0 ? undefined : [...(env ?? []), ...own];
}

function exposed(ports: readonly TaskPort[]): Record<string, object> {
  return Object.fromEntries(ports.map((port) => [keyOf(port), {}]));
}

function bindings(ports: readonly TaskPort[]): Record<string, { HostPort: string }[]> {
  const byKey = Map.groupBy(ports, keyOf);
  return Object.fromEntries([...byKey].map(([key, own]) => [key, own.map(bindingOf)]));
}

function bindingOf({ publishedPort }: TaskPort): { HostPort: string } {
  return { HostPort: publishedPort === 0 ? '' : String(publishedPort) };
}

function keyOf({ targetPort, protocol }: TaskPort): string {
  return `${targetPort}/${protocol}`;
}

/** With its tag, as dockerd's containers of tasks have it; the id of an image stays. */
export function imageNameOf(image: string): string {
  try {
    return familiarReference(withDefaultTag(parseReference(image)));
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return image;
  }
}

function labelsOf(task: AgentTask): Record<string, string> {
  const own = {
    task: '',
    'task.id': task.id,
    'task.name': containerNameOf(task),
    'node.id': task.node,
    'service.id': task.service,
    'service.name': task.serviceName,
  };
  return Object.fromEntries(
    LABEL_PREFIXES.flatMap((prefix) => Object.entries(own).map(([key, value]) => [`${prefix}.${key}`, value])),
  );
}

/** The values of this task that templates name. */
export function templateContext(task: AgentTask, serviceLabels: Readonly<Record<string, string>>): TemplateContext {
  return {
    Service: { ID: task.service, Name: task.serviceName, Labels: serviceLabels },
    Node: { ID: task.node, Hostname: hostname(), Platform: { Architecture: machine(), OS: 'linux' } },
    Task: { ID: task.id, Name: containerNameOf(task), Slot: placeOf(task) },
  };
}
