const OWNER_PREFIX = 'gantry ';
const ALIAS_MAX_BYTES = 250;

/** The alias of the links that the daemon of a data root has made. */
export function aliasOf(dataRoot: string): string {
  return `${OWNER_PREFIX}${dataRoot}`.slice(0, ALIAS_MAX_BYTES);
}

/** The data root of the daemon that has made a link; undefined: no daemon did. */
export function ownerOf({ alias }: { alias: string }): string | undefined {
  return alias.startsWith(OWNER_PREFIX) ? alias.slice(OWNER_PREFIX.length) : undefined;
}
