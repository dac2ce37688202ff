import { type Credential, credentialIn, tokenOf } from '@gantry/limiter/credentials.ts';
import type { Caller } from '@gantry/limiter/types.ts';

import type { Policy } from '../policy.ts';
import type { Pace } from './turns.ts';

/**
 * Whose request it is. `anonymous`: that of its address; `refused`: the credential is wrong; a question: only the forge
 * can say.
 */
export type Identity = Caller | 'anonymous' | 'refused' | Question;

/** A credential that the forge has to be asked about. */
export class Question {
  /** It was known before: neither new nor a guess. */
  readonly wasKnown: boolean;
  readonly #policy: Policy;
  readonly #authorization: string;
  readonly #token: string;

  constructor(policy: Policy, authorization: string, token: string, wasKnown: boolean) {
    this.#policy = policy;
    this.#authorization = authorization;
    this.#token = token;
    this.wasKnown = wasKnown;
  }

  /** Rejects with `IntrospectionFailed`: nobody can say now. */
  async ask(source: string, pace: Pace): Promise<Caller | 'anonymous' | 'refused'> {
    const found = await this.#policy.introspection?.ask(this.#authorization, this.#token, source, pace);
    return found ?? unknownIn(this.#policy);
  }
}

/** What the configuration and the cache know. */
export function identify(policy: Policy, authorization: string | undefined): Identity {
  if (authorization === undefined) return 'anonymous';
  const credential = credentialIn(authorization);
  const known = policy.known.find(credential);
  if (known === 'wrong') return 'refused';
  if (known !== undefined) return known;
  if (credential.kind === 'malformed') return 'refused';
  const token = tokenIn(credential);
  const { introspection } = policy;
  if (introspection === undefined || token === '') return unknownIn(policy);
  const remembered = introspection.find(authorization);
  if (remembered === undefined) {
    return new Question(policy, authorization, token, introspection.wasKnown(authorization));
  }
  return remembered === 'unknown' ? unknownIn(policy) : remembered;
}

function tokenIn(credential: Credential): string {
  if (credential.kind === 'token') return credential.token;
  return credential.kind === 'basic' ? tokenOf(credential) : '';
}

function unknownIn({ config }: Policy): 'anonymous' | 'refused' {
  return config.identities.unknown === 'address' ? 'anonymous' : 'refused';
}
