import type { IncomingHttpHeaders } from 'node:http';

import type { Caller } from '@gantry/limiter/types.ts';

import type { Policy } from '../policy.ts';
import type { Reading, Shown } from './credential-places.ts';
import type { Introspection } from './introspection.ts';
import type { Pace } from './turns.ts';

/**
 * The caller of a request. `anonymous`: its address; `refused`: the credential is wrong; `several`: there are two; a
 * question: only the forge knows.
 */
export type Identity = Caller | 'anonymous' | 'refused' | 'several' | Question;

/** A credential about which the forge has to be asked. */
export class Question {
  /** The credential was known before, so it is no guess. */
  readonly wasKnown: boolean;
  readonly #policy: Policy;
  readonly #introspection: Introspection;
  readonly #shown: Shown;
  /** A reading that was known before comes first. */
  readonly #readings: readonly Reading[];

  constructor(policy: Policy, introspection: Introspection, shown: Shown, readings: readonly Reading[]) {
    this.#policy = policy;
    this.#introspection = introspection;
    this.#shown = shown;
    const known = readings.filter((reading) => introspection.wasKnown(reading));
    this.#readings = [...known, ...readings.filter((reading) => !known.includes(reading))];
    this.wasKnown = known.length > 0;
  }

  /** Rejects with `IntrospectionFailed` when the forge does not answer. */
  async ask(source: string, pace: Pace): Promise<Caller | 'anonymous' | 'refused'> {
    for (const reading of this.#readings) {
      const found = await this.#introspection.ask(reading, source, pace);
      if (found !== undefined) return found;
    }
    return unknownIn(this.#policy, this.#shown);
  }
}

/** The caller by the configuration and the cache. */
export function identify(policy: Policy, headers: IncomingHttpHeaders, url: string): Identity {
  const shown = policy.credentials.find(headers, url);
  if (shown === undefined) return 'anonymous';
  if (shown === 'several') return 'several';
  const { credential } = shown;
  const known = policy.known.find(credential);
  if (known === 'wrong') return 'refused';
  if (known !== undefined) return known;
  // A visitor's cookie may be anything.
  if (credential.kind === 'malformed') return shown.isCookie ? 'anonymous' : 'refused';
  const { introspection } = policy;
  if (introspection === undefined) return unknownIn(policy, shown);
  const readings = introspection.readings(shown);
  const remembered = readings.map((reading) => introspection.find(reading));
  const caller = remembered.find((found) => typeof found === 'object');
  if (caller !== undefined) return caller;
  return remembered.every((found) => found === 'unknown')
    ? unknownIn(policy, shown)
    : new Question(policy, introspection, shown, readings);
}

/** A cookie without a known session is a visitor's, and no error. */
function unknownIn({ config }: Policy, { isCookie }: Shown): 'anonymous' | 'refused' {
  return isCookie || config.identities.unknown === 'address' ? 'anonymous' : 'refused';
}
