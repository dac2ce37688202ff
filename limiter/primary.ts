import { isIPv6 } from 'node:net';

import type { Caller } from './types.ts';

/** An organization, as far as it matters for a quota. */
export type Organization = Readonly<{
  id: string;
  /** On the enterprise plan. */
  enterprise: boolean;
}>;

/** The app through which a user acts. */
export type ActingApp = Readonly<{
  kind: 'platform' | 'oauth';
  /** The organization that owns it, where one does. */
  owner?: Organization;
  /** Organizations that approved it; counts for OAuth apps. */
  approvedBy?: readonly Organization[];
}>;

/** Facts about a request's sender; the gateway finds them out, this file decides their meaning. */
export type CallerFacts =
  | Readonly<{ kind: 'anonymous'; address: string }>
  | Readonly<{
      kind: 'user';
      userId: string;
      /** The ids of the organizations that the user is a member of. */
      memberOf?: readonly string[];
      /** Absent: a personal access token. */
      app?: ActingApp;
    }>
  | Readonly<{
      kind: 'installation';
      installationId: string;
      repositories: number;
      /** Members of the organization; 0 for an installation on a user's account. */
      users: number;
      /** On a hosted organization of the platform. */
      hosted: boolean;
    }>
  | Readonly<{ kind: 'oauth-client'; appId: string; owner?: Organization }>
  | Readonly<{
      kind: 'workflow';
      repositoryId: string;
      /** The repository belongs to an enterprise account. */
      enterprise: boolean;
    }>;

/** The table of primary limits: requests per hour. */
export type PrimaryLimits = Readonly<{
  anonymous: number;
  user: number;
  userThroughEnterpriseApp: number;
  installation: Readonly<{
    least: number;
    hosted: number;
    /** With more than this many repositories, or users, each of them adds. */
    above: number;
    perRepository: number;
    perUser: number;
    most: number;
  }>;
  oauthClient: number;
  oauthClientOfEnterprise: number;
  workflow: number;
  workflowOfEnterprise: number;
  /** Addresses of IPv6 with these leading bits in common are one caller: one customer has a whole /64. */
  ipv6PrefixBits: number;
}>;

/** The numbers of the specification. */
export const defaultPrimaryLimits: PrimaryLimits = {
  anonymous: 60,
  user: 5000,
  userThroughEnterpriseApp: 15_000,
  installation: { least: 5000, hosted: 15_000, above: 20, perRepository: 50, perUser: 50, most: 12_500 },
  oauthClient: 5000,
  oauthClientOfEnterprise: 15_000,
  workflow: 1000,
  workflowOfEnterprise: 15_000,
  ipv6PrefixBits: 64,
};

/**
 * Decides the caller whose quota a request spends, and its size.
 *
 * A user has one counter whatever the token; only the limit that it is compared with depends on the acting app.
 */
export function callerFrom(facts: CallerFacts, limits: PrimaryLimits = defaultPrimaryLimits): Caller {
  switch (facts.kind) {
    case 'anonymous': {
      const address = addressGroup(facts.address, limits.ipv6PrefixBits);
      return {
        kind: 'ip',
        key: `ip:${address}`,
        limit: limits.anonymous,
        label: plainAddress(facts.address),
      };
    }
    case 'user': {
      const limit = throughEnterprise(facts.app, facts.memberOf ?? []) ? limits.userThroughEnterpriseApp : limits.user;
      return { kind: 'user', key: `user:${facts.userId}`, limit, label: `user ID ${facts.userId}` };
    }
    case 'installation': {
      const { installationId } = facts;
      const limit = installationLimit(facts, limits.installation);
      return {
        kind: 'installation',
        key: `installation:${installationId}`,
        limit,
        label: `installation ID ${installationId}`,
      };
    }
    case 'oauth-client': {
      const limit = facts.owner?.enterprise === true ? limits.oauthClientOfEnterprise : limits.oauthClient;
      return { kind: 'oauth-app', key: `app:${facts.appId}`, limit, label: `app ID ${facts.appId}` };
    }
    case 'workflow': {
      const limit = facts.enterprise ? limits.workflowOfEnterprise : limits.workflow;
      const { repositoryId } = facts;
      return {
        kind: 'workflow-repository',
        key: `workflow:${repositoryId}`,
        limit,
        label: `repository ID ${repositoryId}`,
      };
    }
  }
}

/** A platform app counts by its owner alone; an OAuth app only for members of the enterprise that owns or approved it. */
function throughEnterprise(app: ActingApp | undefined, memberOf: readonly string[]): boolean {
  if (app === undefined) return false;
  if (app.kind === 'platform') return app.owner?.enterprise === true;
  const backing = app.owner === undefined ? (app.approvedBy ?? []) : [app.owner, ...(app.approvedBy ?? [])];
  return backing.some(({ id, enterprise }) => enterprise && memberOf.includes(id));
}

function installationLimit(
  { hosted, repositories, users }: { hosted: boolean; repositories: number; users: number },
  limits: PrimaryLimits['installation'],
): number {
  if (hosted) return limits.hosted;
  const forRepositories = repositories > limits.above ? repositories * limits.perRepository : 0;
  const forUsers = users > limits.above ? users * limits.perUser : 0;
  return Math.min(limits.most, limits.least + forRepositories + forUsers);
}

/** IPv4 in an IPv6 socket is written `::ffff:192.0.2.1`; a zone (`%eth0`) is no part of the address. */
function plainAddress(address: string): string {
  const bare = address.split('%', 1)[0] ?? address;
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1] ?? bare;
}

/** One spelling for all addresses that count as one: IPv4 as it is, IPv6 cut to its first bits. */
export function addressGroup(address: string, ipv6PrefixBits: number): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const groups = ipv6Groups(plain);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xff_ff) {
    const [high = 0, low = 0] = groups.slice(6);
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  const kept = groups.map((group, index) => {
    const bits = Math.min(16, Math.max(0, ipv6PrefixBits - index * 16));
    return group & (0xff_ff << (16 - bits)) & 0xff_ff;
  });
  const shown = kept.slice(0, Math.ceil(ipv6PrefixBits / 16)).map((group) => group.toString(16));
  return `${shown.join(':')}/${ipv6PrefixBits}`;
}

/** The eight 16-bit groups of a valid IPv6 address in any spelling. */
function ipv6Groups(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const before = groupsOf(head);
  if (tail === undefined) return before;
  const after = groupsOf(tail);
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
}

function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
