import type { IncomingHttpHeaders } from 'node:http';

import type { Session } from './session.ts';

const PREFIX = 'x-docker-expose-session-';

/** A session as its client describes it in headers. */
export function describedSession(
  headers: IncomingHttpHeaders,
  client: string | undefined,
): ConstructorParameters<typeof Session>[1] {
  const header = (name: string): string => [headers[PREFIX + name] ?? ''].flat().join(', ');
  const methods = header('grpc-method').split(/,\s*/).filter(Boolean);
  return { id: header('uuid'), methods, sharedKey: sharedKeyOf(client, header('sharedkey')) };
}

/** The key of a client for its folders, which another client cannot have. */
function sharedKeyOf(client: string | undefined, key: string): string | undefined {
  return client === undefined || key === '' ? undefined : JSON.stringify([client, key]);
}
