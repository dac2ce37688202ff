import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { EXIT, Exit } from '../exit-codes.ts';

/**
 * A refusal while the container is created ends the command with 125, which differs from exit codes of the container.
 */
export async function asEngineFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ApiError) throw new Exit(EXIT.engineFailed, error.message);
    throw error;
  }
}

/** Starts a container; ends with 127 for a missing program, 126 for one that cannot be run. */
export async function startOrExplain(engine: Connection, id: string, detachKeys?: string): Promise<void> {
  try {
    await containers.start(engine, id, detachKeys);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { State } = await containers.inspect(engine, id);
    const known: readonly number[] = [EXIT.notFound, EXIT.cannotExecute];
    throw new Exit(known.includes(State.ExitCode) ? State.ExitCode : EXIT.engineFailed, error.message);
  }
}
