import { EngineError } from '../../lib/errors.ts';
import type { Leadership } from '../leader/leadership.ts';
import { checkWrite } from '../leader/write-schemas.ts';
import { CertificateRequest, Nothing, OutageRequest, PeerRequest, WriteRequest } from '../wire/schemas.ts';
import { route, type Routes } from '../wire/server.ts';
import type { Identity } from './identity.ts';

/** Routes of a manager on port 2377. `leading` throws where it does not lead, and names the leader. */
export function managerRoutes(
  identity: () => Identity,
  leading: () => Leadership,
  dataKey: () => Buffer | undefined,
): Routes {
  return {
    'GET /v1/ca': route('anyone', Nothing, async () => await Promise.resolve({ certificate: identity().root })),
    'POST /v1/certificates': route(
      'anyone',
      CertificateRequest,
      async (body, peer) => await leading().certificate(body, peer),
    ),
    'POST /v1/peers': route('manager', PeerRequest, async (body, peer) => await leading().addPeer(peer!.id, body)),
    'POST /v1/peers/promote': route('manager', Nothing, async (_body, peer) => await leading().promotePeer(peer!.id)),
    'POST /v1/leave': route('node', Nothing, async (_body, peer) => await leading().leave(peer!.id)),
    'POST /v1/ping': route('manager', Nothing, async () => {
      leading();
      return await Promise.resolve({ node: identity().nodeId });
    }),
    'POST /v1/outage': route(
      'manager',
      OutageRequest,
      async ({ step }, peer) => await Promise.resolve({ granted: leading().outage[step](peer!.id) }),
    ),
    'POST /v1/data-key': route('manager', Nothing, async () => {
      const key = dataKey();
      if (key === undefined) throw new EngineError('unavailable', 'this manager does not have the key');
      return await Promise.resolve({ key: key.toString('base64') });
    }),
    'POST /v1/write': route('manager', WriteRequest, async (request) => {
      checkWrite(request);
      return await leading().write(request);
    }),
  };
}
