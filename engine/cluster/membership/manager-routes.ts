import { EngineError } from '../../lib/errors.ts';
import type { Leadership } from '../leader/leadership.ts';
import { checkWrite } from '../leader/write-schemas.ts';
import { LogPublication, LogRequest } from '../wire/log-messages.ts';
import { CertificateRequest, Nothing, OutageRequest, PeerRequest, WriteRequest } from '../wire/schemas.ts';
import { route, upgrade, type Routes, type Upgrades } from '../wire/server.ts';
import type { Identity } from './identity.ts';

/** Routes of a manager on port 2377. `leading` throws where it does not lead, and names the leader. */
export function managerRoutes(
  identity: () => Identity,
  leading: () => Leadership,
  dataKey: () => Buffer | undefined,
  root: () => string,
): Routes {
  return {
    'GET /v1/ca': route('anyone', Nothing, async () => await Promise.resolve({ certificate: root() })),
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

/** Connections to a manager on port 2377 on which both sides talk; `leading` as above. */
export function managerUpgrades(leading: () => Leadership): Upgrades {
  return {
    '/v1/session': upgrade('node', Nothing, (_request, peer, open) => leading().openSession(peer, open())),
    '/v1/logs': upgrade('manager', LogRequest, (request, _peer, open) => {
      const { logs } = leading();
      const socket = open();
      socket.resume(); // only to see its end
      logs.read(request, socket);
    }),
    '/v1/logs/publish': upgrade('node', LogPublication, ({ number }, peer, open) =>
      leading().logs.publish(peer.id, number, open),
    ),
  };
}
