import { setTimeout } from 'node:timers/promises';

import { ApiError, Connection, ConnectionError } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';
import { targetOf } from '@gantry/client/target.ts';

const RETRY_SECONDS = 2;
const RETRIES = 1800;

const [, , address, id = ''] = process.argv;
using engine = new Connection(targetOf(address, process.env));
await removeAfterEnd();

/** The engine may restart meanwhile; after an hour without it this process gives up. */
async function removeAfterEnd(): Promise<void> {
  for (let failures = 0; failures < RETRIES; failures += 1) {
    try {
      await containers.wait(engine, id);
      await containers.remove(engine, id, { v: true });
      return;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return; // already removed
      if (!(error instanceof ApiError) && !(error instanceof ConnectionError)) throw error;
    }
    await setTimeout(RETRY_SECONDS * 1000);
  }
}
