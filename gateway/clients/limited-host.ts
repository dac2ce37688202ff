import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { type Settings, sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';

import { CodeHost } from './code-host.ts';

const SOCKET = 'http.sock';

/** The token of user 42. */
export const TOKEN = 'a-token-of-ada';

export const IDENTITIES = {
  users: { '42': {} },
  tokens: [{ sha256: sha256(TOKEN), user: '42' }],
};

/** One request, then the primary limit is reached until the window ends. */
export const SMALL_QUOTA = { limits: { user: 1 }, categories: { core: { windowSeconds: 4 } } };

/** One read of an endpoint, then the secondary limit is reached until the window ends. */
export const FEW_POINTS = {
  secondary: { restPoints: { limit: 1 }, graphqlPoints: { limit: 1 }, windowSeconds: 4 },
};

export type LimitedHost = AsyncDisposable & { host: CodeHost; gateway: TestGateway; socketPath: string };

/** A code host, and before it a gateway that knows the token. */
export async function startLimitedHost(settings: Settings): Promise<LimitedHost> {
  await using undo = new AsyncDisposableStack();
  const host = undo.use(await CodeHost.start());
  const gateway = undo.use(
    await TestGateway.start({
      upstream: host.url,
      listen: ['127.0.0.1:0', `unix:{folder}/${SOCKET}`],
      identities: IDENTITIES,
      ...settings,
    }),
  );
  const parts = undo.move();
  return {
    host,
    gateway,
    socketPath: join(gateway.folder, SOCKET),
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

/** Waits as a client does that believes the gateway: exactly until that second begins. */
export async function untilSecond(seconds: number): Promise<void> {
  for (let left = 1; left > 0;) {
    left = seconds * 1000 - Date.now();
    if (left > 0) await sleep(left);
  }
}

/** Waits for what `retry-after` says. */
export async function afterSeconds(seconds: number): Promise<void> {
  await untilSecond(Date.now() / 1000 + seconds);
}
