import type { Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { bold } from '../output/colour.ts';
import { visible } from '../output/escape.ts';

/** The container's code; 0 after the detach keys, which leave it running. */
export async function exitCodeOf(engine: Connection, id: string): Promise<number> {
  const { Name, State } = await containers.inspect(engine, id);
  if (!State.Running) return State.ExitCode;
  // Printed, because a detach otherwise looks like the end.
  const shown = visible(Name.replace(/^\//, ''));
  console.error(`Detached: ${shown} goes on. ${bold(`gantry attach ${shown}`, 'stderr')} comes back.`);
  return 0;
}
