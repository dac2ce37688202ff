import type { Duplex } from 'node:stream';

import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';

const ANSWER_TIMEOUT_MS = 5000;
const MAX_LEADERS = 3;

/** Opens a connection on which both sides talk to the leader, which any of these managers may name. */
export async function upgradeToLeader(client: WireClient, managers: readonly string[], path: string): Promise<Duplex> {
  let reason: unknown = new NotReached('no manager is known');
  for (const manager of managers) {
    let address = manager;
    for (let tries = 0; tries < MAX_LEADERS; tries += 1) {
      try {
        return await client.upgrade(address, path, ANSWER_TIMEOUT_MS);
      } catch (error) {
        reason = error;
        if (!(error instanceof NotLeader) || error.leader === undefined || error.leader === address) break;
        address = error.leader;
      }
    }
  }
  throw reason;
}
