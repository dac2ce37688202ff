import type { CredentialsByHost } from '../../builder/options.ts';
import { credentialsIn } from '../../registry/auth/credentials.ts';
import type { Session } from '../session/session.ts';

/** The one key of docker's hub in the credentials of clients. */
const HUB = 'docker.io';
const HUB_KEY = 'registry-1.docker.io';

/** A client's credentials for registries. */
export function credentialsOf(session: Session, signal: AbortSignal): CredentialsByHost {
  return {
    get: async (host) => {
      const given = await session.credentials(host === HUB ? HUB_KEY : host, signal);
      if (given === undefined) return undefined;
      const { username, secret } = given;
      return credentialsIn(username === '' ? { identitytoken: secret } : { username, password: secret });
    },
  };
}
