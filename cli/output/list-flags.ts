/** The flags that every list has. */
export const LIST_FLAGS = {
  filter: { kind: 'list', short: 'f', value: 'KEY=VALUE', help: 'Only matching ones' },
  format: { kind: 'text', value: 'FORMAT', help: 'json, a template such as {{.Name}}, or: table TEMPLATE' },
  quiet: { kind: 'boolean', short: 'q', help: 'Only ids or names' },
} as const;

/** Whether only ids or names are printed: as in docker, a format other than the table overrides `--quiet`. */
export function wantsIds({ quiet, format }: { quiet: boolean; format?: string | undefined }): boolean {
  return quiet && (format === undefined || format === '' || format === 'table');
}

export const NO_TRUNC = { kind: 'boolean', help: 'Full ids and texts' } as const;

/** The flag of commands that show whole objects. */
export const OBJECT_FORMAT = {
  format: { kind: 'text', short: 'f', value: 'FORMAT', help: 'json, or a template such as {{json .Config}}' },
} as const;
