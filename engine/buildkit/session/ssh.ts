import { once } from 'node:events';
import type { Socket } from 'node:net';

import type { SshAgents } from '../../builder/steps/ssh-agents.ts';
import { Nothing } from '../messages/common.ts';
import { BytesMessage, CheckAgentRequest } from '../messages/session.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import type { Session } from './session.ts';

const SERVICE = '/moby.sshforward.v1.SSH/';
const ID_HEADER = 'buildkit.ssh.id';
const GONE: ReadonlySet<number> = new Set([StatusCode.UNAVAILABLE, StatusCode.CANCELLED]);

/** The SSH agents that a client forwards (`--ssh`). */
export function agentsOf(session: Session, signal: AbortSignal): SshAgents {
  return {
    has: async (id) => {
      const path = `${SERVICE}CheckAgent`;
      if (!session.supports(path)) return false;
      try {
        await session.call(path, CheckAgentRequest, Nothing, { id }, signal);
        return true;
      } catch (error) {
        if (error instanceof GrpcError && !GONE.has(error.code)) return false;
        throw error;
      }
    },
    forward: async (id, connection) => {
      using exchange = session.exchange(`${SERVICE}ForwardAgent`, BytesMessage, BytesMessage, signal, {
        [ID_HEADER]: id,
      });
      const sent = (async (): Promise<void> => {
        for await (const data of connection.iterator({ destroyOnReturn: false }))
          await exchange.send({ data: data as Buffer });
        exchange.end();
      })();
      sent.catch(() => connection.destroy());
      for await (const { data } of exchange.responses) await write(connection, data);
      connection.end();
    },
  };
}

async function write(connection: Socket, data: Uint8Array): Promise<void> {
  if (connection.destroyed) throw new GrpcError(StatusCode.CANCELLED, 'the step has closed the connection');
  if (connection.write(data)) return;
  const stop = new AbortController();
  try {
    const { signal } = stop;
    await Promise.race([once(connection, 'drain', { signal }), once(connection, 'close', { signal })]);
  } finally {
    stop.abort();
  }
}
