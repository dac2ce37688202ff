const PREFIX = 'container:';

/** The container in a mode such as `container:web`; undefined for all other modes. */
export function sharedWith(mode: string): string | undefined {
  return mode.startsWith(PREFIX) ? mode.slice(PREFIX.length) : undefined;
}

/** The mode that shares the namespace of a container. */
export function sharing(ref: string): string {
  return PREFIX + ref;
}
