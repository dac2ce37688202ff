import type { Container } from '../containers/store.ts';
import { EngineError } from '../lib/errors.ts';

/** What a tag may name, as in docker: methods and fields of what it knows of a container. */
const FIELDS: Readonly<Record<string, (container: Container) => string>> = {
  ID: ({ id }) => id.slice(0, 12),
  FullID: ({ id }) => id,
  ContainerID: ({ id }) => id,
  Name: ({ name }) => name,
  ContainerName: ({ name }) => `/${name}`,
  ImageID: ({ imageId }) => imageId.slice(0, 12),
  ImageFullID: ({ imageId }) => imageId,
  ContainerImageID: ({ imageId }) => imageId,
  ImageName: ({ imageName }) => imageName,
  ContainerImageName: ({ imageName }) => imageName,
  Command: (container) => commandOf(container),
  ContainerEntrypoint: ({ path }) => path,
  DaemonName: () => 'docker',
};

const ACTION = /\{\{\s*\.(\w+)\s*\}\}/g;

/** The program with its arguments. */
export function commandOf({ path, args }: Container): string {
  return [path, ...args].join(' ');
}

/** The tag that the options ask for, else `usual`. */
export function tagOf(container: Container, usual: string): string {
  const written = container.hostConfig.LogConfig.Config['tag'] || usual;
  return written.replaceAll(ACTION, (action, field: string) => FIELDS[field]?.(container) ?? action);
}

/** Throws `invalid` for a tag with anything but fields. */
export function checkTag(tag = ''): void {
  for (const [written] of tag.matchAll(/\{\{[^]*?(\}\}|$)/g)) {
    const field = /^\{\{\s*\.(\w+)\s*\}\}$/.exec(written)?.[1];
    if (field === undefined || FIELDS[field] === undefined) {
      throw new EngineError('invalid', `invalid tag: '${written}' is none of .${Object.keys(FIELDS).join(', .')}`);
    }
  }
}
