import { isIP } from 'node:net';

import type { Caller, CallerKind, Category, Endpoint } from '@gantry/limiter/types.ts';

import { coreLimits } from '../../admin/caller-limits.ts';
import { addressOf, callerKey } from '../../identity/caller-key.ts';
import { identify, Question } from '../../identity/identify.ts';
import { IntrospectionFailed } from '../../identity/introspection.ts';
import { anonymousCaller, type Policy, withOverride } from '../../policy.ts';
import { canonicalTarget } from '../../routes/path.ts';
import { GrpcError } from './grpc-server.ts';
import type { Descriptor } from './wire.ts';

const INVALID_ARGUMENT = 3;
const KEYS = ['remote_address', 'authorization', 'caller', 'method', 'path', 'category'] as const;
type Key = (typeof KEYS)[number];
type Entries = Readonly<Partial<Record<Key, string>>>;

/** A descriptor's request: it is decided, refused with these words, or not limited (no endpoint). */
export type Subject =
  | Readonly<{ caller: Caller; endpoint: Endpoint | undefined; points: number }>
  | Readonly<{ caller: Caller; refused: string }>;

/** Endpoints of requests that are known by their category alone. */
export type CategoryEndpoints = Readonly<Record<Category, Endpoint>>;

/**
 * The caller and the endpoint that a descriptor stands for. Throws a `GrpcError` when the proxy's settings are wrong: a
 * key that nobody knows would be a limit that does not exist.
 */
export async function subjectOf(
  policy: Policy,
  byCategory: CategoryEndpoints,
  descriptor: Descriptor,
): Promise<Subject> {
  const entries = entriesOf(descriptor);
  const path = entries.path ?? '/';
  const caller = await callerOf(policy, entries, path);
  if (caller === 'unavailable') {
    return { caller: addressCaller(policy, entries), refused: 'Credentials cannot be checked at the moment.' };
  }
  if (entries.category !== undefined) {
    if (!Object.hasOwn(byCategory, entries.category)) throw wrong(`there is no category ${entries.category}`);
    const endpoint = byCategory[entries.category as Category];
    return { caller, endpoint, points: endpoint.points };
  }
  const target = canonicalTarget(path);
  if ('refused' in target) return { caller, refused: target.refused };
  const route = policy.routes.find(entries.method ?? '', target);
  if (route.kind === 'unlimited' || policy.exempt.has(caller.key)) return { caller, endpoint: undefined, points: 0 };
  if (route.kind === 'ambiguous') return { caller, refused: 'The path is ambiguous.' };
  if (route.kind !== 'graphql') return { caller, endpoint: route.endpoint, points: route.endpoint.points };
  const isQuery = ['GET', 'HEAD', 'OPTIONS'].includes(entries.method ?? '') && target.query.length <= 1;
  return { caller, endpoint: route.endpoint, points: isQuery ? policy.graphqlCost.query : policy.graphqlCost.unread };
}

function entriesOf({ entries }: Descriptor): Entries {
  const found: Partial<Record<Key, string>> = {};
  for (const [key, value] of entries) {
    const known = KEYS.find((one) => one === key);
    if (known === undefined) throw wrong(`the key ${key.slice(0, 100)} is none of ${KEYS.join(', ')}`);
    if (found[known] !== undefined) throw wrong(`the key ${key} stands twice in a descriptor`);
    found[known] = value;
  }
  if (found.caller === undefined && found.remote_address === undefined)
    throw wrong('remote_address or caller is missing');
  const isRequest = found.method !== undefined && found.path !== undefined;
  if (isRequest === (found.category !== undefined)) throw wrong('either method and path or a category are expected');
  return found;
}

async function callerOf(policy: Policy, entries: Entries, path: string): Promise<Caller | 'unavailable'> {
  if (entries.caller !== undefined) return namedCaller(policy, entries.caller);
  const address = addressCaller(policy, entries);
  const { authorization } = entries;
  const identity = identify(policy, authorization === undefined ? {} : { authorization }, path);
  const found = identity instanceof Question ? await ask(identity, address) : identity;
  if (typeof found === 'object') return withOverride(policy, found);
  return found === 'unavailable' ? found : address;
}

async function ask(question: Question, address: Caller): Promise<Caller | 'anonymous' | 'refused' | 'unavailable'> {
  try {
    return await question.ask(address.key, question.wasKnown ? 'urgent' : 'normal');
  } catch (error) {
    if (error instanceof IntrospectionFailed) return 'unavailable';
    throw error;
  }
}

function addressCaller(policy: Policy, { remote_address: address = '' }: Entries): Caller {
  if (isIP(address) === 0) throw wrong(`remote_address is no address: ${address.slice(0, 100)}`);
  return anonymousCaller(policy, address);
}

const KINDS: ReadonlyMap<string, readonly [kind: CallerKind, label: string]> = new Map([
  ['user', ['user', 'user ID']],
  ['installation', ['installation', 'installation ID']],
  ['app', ['oauth-app', 'app ID']],
  ['workflow', ['workflow-repository', 'repository ID']],
  ['network', ['ip', 'the network']],
]);

function namedCaller(policy: Policy, written: string): Caller {
  const key = callerKey(written);
  if (key === undefined) throw wrong(`there is no caller ${written.slice(0, 100)}`);
  if (key.startsWith('ip:')) return anonymousCaller(policy, addressOf(key));
  const [kind, label] = KINDS.get(key.slice(0, key.indexOf(':')))!;
  const known = [...policy.known.limitsOf(key), ...(policy.introspection?.limitsOf(key) ?? [])];
  const limit = coreLimits(policy.config, key, known).reduce((most, one) => Math.max(most, one));
  return { kind, key, limit, label: `${label} ${key.slice(key.indexOf(':') + 1)}` };
}

function wrong(message: string): GrpcError {
  return new GrpcError(INVALID_ARGUMENT, message);
}
