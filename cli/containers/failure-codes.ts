import { ApiError, type Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { EXIT, Exit } from '../exit-codes.ts';

/** What the engine refuses while a container is made ends the command with 125, so that no code of the container does. */
export async function asEngineFailure<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ApiError) throw new Exit(EXIT.engineFailed, error.message);
    throw error;
  }
}

/** Starts a container; a program that is not there ends with 127, one that cannot be run with 126. */
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
