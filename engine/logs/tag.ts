import { hostname } from 'node:os';

import { TemplateError } from '@gantry/template/error.ts';
import { compileTemplate } from '@gantry/template/run.ts';

import { EngineError } from '../lib/errors.ts';
import type { LoggedContainer } from './logged-container.ts';

/** The program with its arguments. */
export function commandOf({ path, args }: LoggedContainer): string {
  return [path, ...args].join(' ');
}

/** The tag of the options, else `usual`. Throws `invalid` for fields that this container lacks. */
export function tagOf(container: LoggedContainer, usual: string): string {
  const written = container.hostConfig.LogConfig.Config['tag'] || usual;
  return refusing(() => compileTemplate(written)(namesOf(container)));
}

/** Throws `invalid` for a malformed template; its fields are resolved when the container exists. */
export function checkTag(tag = ''): void {
  refusing(() => compileTemplate(tag));
}

/** The names in a tag, as in docker: methods and fields of its type for a container. */
function namesOf(container: LoggedContainer): Readonly<Record<string, unknown>> {
  const { id, name, imageId, imageName, path, args, config, createdAt } = container;
  return {
    ID: id.slice(0, 12),
    FullID: id,
    Name: name,
    // The beginning of the whole id with its kind, as in dockerd.
    ImageID: imageId.slice(0, 12),
    ImageFullID: imageId,
    ImageName: imageName,
    Command: commandOf(container),
    DaemonName: 'docker',
    get Hostname() {
      return hostname();
    },
    Config: container.hostConfig.LogConfig.Config,
    ContainerID: id,
    ContainerName: `/${name}`,
    ContainerEntrypoint: path,
    ContainerArgs: args,
    ContainerImageID: imageId,
    ContainerImageName: imageName,
    ContainerCreated: createdAt?.toString() ?? '',
    ContainerEnv: config.Env,
    ContainerLabels: sortedByKey(config.Labels ?? {}),
  };
}

/** The order in which Go writes a map. */
export function sortedByKey(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw new EngineError('invalid', `invalid tag: ${error.message}`, { cause: error });
  }
}
