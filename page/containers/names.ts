import type { Summary } from '@gantry/client/containers.ts';

/** The name without docker's slash. */
export function nameOf({ Names, Id }: Summary): string {
  return (Names[0] ?? Id.slice(0, 12)).replace(/^\//, '');
}
