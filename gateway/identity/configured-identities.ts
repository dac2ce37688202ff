import { hash, timingSafeEqual } from 'node:crypto';

import { type Credential, tokenOf } from '@gantry/limiter/credentials.ts';
import {
  type ActingApp,
  callerFrom,
  type CallerFacts,
  type Organization,
  type PrimaryLimits,
} from '@gantry/limiter/primary.ts';
import type { Caller } from '@gantry/limiter/types.ts';

import type { IdentitySettings } from '../config/settings/identities.ts';

/** An app's client id and secret. `anonymous`: a platform app's, which have no limit of their own. */
type Client = Readonly<{ digest: Buffer; caller: Caller | 'anonymous' }>;

/**
 * The callers of the configuration file, found by the SHA-256 of what they show.
 *
 * A plain hash is enough for tokens and client secrets that a forge issues: they are random and long, so there is no
 * dictionary to try. Nobody can choose the hash of a guess, so the time of its look-up does not say how much of the guess
 * was right.
 */
export class ConfiguredIdentities {
  /** By the digest in hexadecimal. */
  readonly #tokens = new Map<string, Caller>();
  readonly #clients = new Map<string, Client>();

  constructor(identities: IdentitySettings, limits: PrimaryLimits) {
    for (const token of identities.tokens) {
      this.#tokens.set(token.sha256.toLowerCase(), callerFrom(factsOf(token, identities), limits));
    }
    for (const [appId, app] of Object.entries(identities.apps)) {
      if (app.clientId === undefined || app.clientSecretSha256 === undefined) continue;
      const owner = organization(identities, app.owner);
      const facts: CallerFacts = { kind: 'oauth-client', appId, ...(owner === undefined ? {} : { owner }) };
      const caller = app.kind === 'oauth' ? callerFrom(facts, limits) : 'anonymous';
      this.#clients.set(app.clientId, { digest: Buffer.from(app.clientSecretSha256, 'hex'), caller });
    }
  }

  /** `wrong`: the client id is known, the secret differs. Undefined: unknown. */
  find(credential: Credential): Caller | 'anonymous' | 'wrong' | undefined {
    switch (credential.kind) {
      case 'none':
      case 'malformed':
        return undefined;
      case 'token':
        return this.#byToken(credential.token);
      case 'basic': {
        const client = this.#clients.get(credential.user);
        if (client === undefined) return this.#byToken(tokenOf(credential));
        return timingSafeEqual(digestOf(credential.password), client.digest) ? client.caller : 'wrong';
      }
    }
  }

  /** The limits that the credentials in the file give this caller. */
  limitsOf(key: string): number[] {
    const all = [...this.#tokens.values()];
    for (const { caller } of this.#clients.values()) if (caller !== 'anonymous') all.push(caller);
    return all.filter((caller) => caller.key === key).map(({ limit }) => limit);
  }

  #byToken(token: string): Caller | undefined {
    return token === '' ? undefined : this.#tokens.get(hash('sha256', token, 'hex'));
  }
}

function digestOf(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

function factsOf(token: IdentitySettings['tokens'][number], identities: IdentitySettings): CallerFacts {
  if (token.installation !== undefined) return installationFacts(identities, token.installation);
  if (token.repository !== undefined) {
    const org = organization(identities, identities.repositories[token.repository]?.org);
    return { kind: 'workflow', repositoryId: token.repository, enterprise: org?.enterprise ?? false };
  }
  const userId = token.user ?? '';
  const app = actingApp(identities, token.app);
  const memberOf = identities.users[userId]?.orgs ?? [];
  return { kind: 'user', userId, ...(app === undefined ? {} : { memberOf, app }) };
}

function installationFacts(identities: IdentitySettings, installationId: string): CallerFacts {
  const { org: orgId, repositories = 0 } = identities.installations[installationId] ?? {};
  const org = orgId === undefined ? undefined : identities.orgs[orgId];
  const listed = Object.values(identities.users).filter(({ orgs }) => orgId !== undefined && orgs.includes(orgId));
  const users = org === undefined ? 0 : (org.members ?? listed.length);
  return { kind: 'installation', installationId, repositories, users, hosted: org?.hosted ?? false };
}

function actingApp(identities: IdentitySettings, id: string | undefined): ActingApp | undefined {
  const app = id === undefined ? undefined : identities.apps[id];
  if (app === undefined) return undefined;
  const owner = organization(identities, app.owner);
  const approvedBy = app.approvedBy.flatMap((org) => organization(identities, org) ?? []);
  return { kind: app.kind, ...(owner === undefined ? {} : { owner }), approvedBy };
}

function organization(identities: IdentitySettings, id: string | undefined): Organization | undefined {
  const org = id === undefined ? undefined : identities.orgs[id];
  return id === undefined || org === undefined ? undefined : { id, enterprise: org.enterprise };
}
