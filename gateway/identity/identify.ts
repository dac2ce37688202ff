import { type Credential, credentialIn, tokenOf } from '@gantry/limiter/credentials.ts';
import type { Caller } from '@gantry/limiter/types.ts';

import type { Policy } from '../policy.ts';
import { IntrospectionFailed } from './introspection.ts';

/**
 * Whose request it is. `anonymous`: that of its address; `refused`: the credential is wrong; `unavailable`: nobody can
 * say now.
 */
export type Identity = Caller | 'anonymous' | 'refused' | 'unavailable';

/** Told why nobody can say. */
type Report = (failure: IntrospectionFailed) => void;

/** Answers at once where the configuration or the cache knows, later where the forge has to be asked. */
export function identify(
  policy: Policy,
  authorization: string | undefined,
  report: Report,
): Identity | Promise<Identity> {
  if (authorization === undefined) return 'anonymous';
  const credential = credentialIn(authorization);
  const known = policy.known.find(credential);
  if (known === 'wrong') return 'refused';
  if (known !== undefined) return known;
  if (credential.kind === 'malformed') return 'refused';
  const otherwise = policy.config.identities.unknown === 'address' ? 'anonymous' : 'refused';
  return policy.introspection === undefined
    ? otherwise
    : introspect(policy, authorization, credential, otherwise, report);
}

function introspect(
  { introspection }: Policy,
  authorization: string,
  credential: Credential,
  otherwise: 'anonymous' | 'refused',
  report: Report,
): Identity | Promise<Identity> {
  const token = credential.kind === 'token' ? credential.token : credential.kind === 'basic' ? tokenOf(credential) : '';
  if (token === '' || introspection === undefined) return otherwise;
  const found = introspection.find(authorization, token);
  if (!(found instanceof Promise)) return found ?? otherwise;
  return found.then(
    (caller) => caller ?? otherwise,
    (error: unknown) => {
      if (!(error instanceof IntrospectionFailed)) throw error;
      report(error);
      return 'unavailable';
    },
  );
}
