import { STATUS_CODES } from 'node:http';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { DEFAULT_REGISTRY } from '../connection/endpoints.ts';
import { discard } from '../connection/read-body.ts';
import { withRegistry } from '../connection/session.ts';
import { isOfTokenServer, RegistryError } from '../errors.ts';
import type { Credentials } from './credentials.ts';

type Needs = Pick<Engine, 'config' | 'clock'>;

/** Checks credentials at a registry; returns the token that replaces the password, if the registry issues one. */
export async function login(
  engine: Needs,
  address: string,
  credentials: Credentials,
  signal: AbortSignal,
): Promise<string> {
  const host = hostOf(address);
  return await withRegistry(engine, { host, credentials, useMirrors: false, signal }, async (session) => {
    session.authorizer.wantsIdentity = true;
    const url = session.address('/v2/');
    try {
      const answer = await session.ask(url, { method: 'GET', scopes: [], signal });
      await discard(answer);
    } catch (error) {
      if (!(error instanceof RegistryError) || error.status === 0) throw error;
      if (isOfTokenServer(error)) throw new EngineError('unauthorized', error.message, { cause: error });
      const { status } = error;
      const text = `login attempt to ${url.href} failed with status: ${status} ${STATUS_CODES[status] ?? ''}`;
      throw new EngineError(status === 401 ? 'unauthorized' : 'failed', text, { cause: error });
    }
    return session.authorizer.identityToken || credentials.identityToken;
  });
}

/** The registry of a `serveraddress`: a host, or a URL such as that of the old index. */
function hostOf(address: string): string {
  const [host = ''] = address.replace(/^https?:\/\//, '').split('/');
  return host === '' || host === 'index.docker.io' ? DEFAULT_REGISTRY : host;
}
