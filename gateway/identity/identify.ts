import type { IncomingHttpHeaders } from 'node:http';

import { type Credential, tokenOf } from '@gantry/limiter/credentials.ts';
import type { Caller } from '@gantry/limiter/types.ts';

import type { Policy } from '../policy.ts';
import type { Shown } from './shown.ts';
import type { Pace } from './turns.ts';

/**
 * The caller of a request. `anonymous`: its address; `refused`: the credential is wrong; a question: only the forge
 * knows.
 */
export type Identity = Caller | 'anonymous' | 'refused' | Question;

/** A credential about which the forge has to be asked. */
export class Question {
  /** The credential was known before, so it is no guess. */
  readonly wasKnown: boolean;
  readonly #policy: Policy;
  readonly #shown: Shown;
  readonly #token: string;

  constructor(policy: Policy, shown: Shown, token: string, wasKnown: boolean) {
    this.#policy = policy;
    this.#shown = shown;
    this.#token = token;
    this.wasKnown = wasKnown;
  }

  /** Rejects with `IntrospectionFailed` when the forge does not answer. */
  async ask(source: string, pace: Pace): Promise<Caller | 'anonymous' | 'refused'> {
    const found = await this.#policy.introspection?.ask(this.#shown.header, this.#token, source, pace);
    return found ?? unknownIn(this.#policy, this.#shown);
  }
}

/** The caller by the configuration and the cache. */
export function identify(policy: Policy, headers: IncomingHttpHeaders, url: string): Identity {
  const shown = policy.credentials.find(headers, url);
  if (shown === undefined) return 'anonymous';
  const { credential, header } = shown;
  const known = policy.known.find(credential);
  if (known === 'wrong') return 'refused';
  if (known !== undefined) return known;
  // A visitor's cookie may be anything.
  if (credential.kind === 'malformed') return header.name === 'cookie' ? 'anonymous' : 'refused';
  const token = tokenIn(credential);
  const { introspection } = policy;
  if (introspection === undefined || token === '') return unknownIn(policy, shown);
  const remembered = introspection.find(header);
  if (remembered === undefined) return new Question(policy, shown, token, introspection.wasKnown(header));
  return remembered === 'unknown' ? unknownIn(policy, shown) : remembered;
}

function tokenIn(credential: Credential): string {
  if (credential.kind === 'token') return credential.token;
  return credential.kind === 'basic' ? tokenOf(credential) : '';
}

/** A cookie without a known session is a visitor's, and no error. */
function unknownIn({ config }: Policy, { header }: Shown): 'anonymous' | 'refused' {
  return header.name === 'cookie' || config.identities.unknown === 'address' ? 'anonymous' : 'refused';
}
