import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

import { listenAddresses } from '../../config/listen.ts';
import type { Gateway } from '../../gateway.ts';
import { GrpcServer } from './grpc-server.ts';
import { rateLimitService } from './rate-limit-service.ts';

/** Opens Envoy's rate limit service. */
export async function openRateLimitService(
  gateway: Gateway,
  address: string,
  workers: number,
): Promise<AsyncDisposable> {
  await using undo = new AsyncDisposableStack();
  const grpc = undo.use(new GrpcServer(rateLimitService(gateway)));
  grpc.server.listen({ ...listenAddresses(address)[0], reusePort: workers > 1 });
  await once(grpc.server, 'listening');
  const { address: host, port } = grpc.server.address() as AddressInfo;
  gateway.log.logger.info({ host, port }, "Envoy's rate limit service is served");
  undo.move();
  return grpc;
}
