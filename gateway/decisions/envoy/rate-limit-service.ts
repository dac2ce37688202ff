import { headersOf, refusalOf } from '@gantry/limiter/present.ts';
import { MAX_LIMIT } from '@gantry/limiter/rules.ts';
import { type Admission, CATEGORIES, type Category, type Decision, type Refusal } from '@gantry/limiter/types.ts';

import type { Gateway } from '../../gateway.ts';
import type { Policy } from '../../policy.ts';
import { type CategoryEndpoints, type Subject, subjectOf } from './descriptors.ts';
import { GrpcError, type Method } from './grpc-server.ts';
import {
  type Answer,
  decodeQuestion,
  encodeAnswer,
  OK,
  OVER_LIMIT,
  type Question,
  type Status,
  WireError,
} from './wire.ts';

const INVALID_ARGUMENT = 3;
const MAX_DESCRIPTORS = 100;

/** A descriptor's state: a decision, or the state of a request that nobody limits or that cannot be judged. */
type Judged = Readonly<{
  decision?: Decision;
  hits: number;
  status: Status;
  headers: Record<string, string>;
  body: string;
}>;

/** `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`: each descriptor is decided like a request. */
export function rateLimitService(gateway: Gateway): Method {
  const endpoints = CATEGORIES.map((category) => [
    category,
    gateway.limiter.endpoint({ name: `category ${category}`, category, points: 1 }),
  ]);
  const byCategory = Object.fromEntries(endpoints) as CategoryEndpoints;
  return {
    path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    mayCall: (address) => {
      if (gateway.policy.trusted.trusts(address)) return true;
      gateway.log.foreignQuestion(address);
      return false;
    },
    answer: async (message) => encodeAnswer(await answerTo(gateway, byCategory, decode(message))),
    reportBug: (error) => gateway.log.bug(error),
  };
}

function decode(message: Buffer): Question {
  try {
    return decodeQuestion(message);
  } catch (error) {
    throw error instanceof WireError ? new GrpcError(INVALID_ARGUMENT, error.message) : error;
  }
}

/** All descriptors must have room; otherwise none of them has spent anything. */
async function answerTo(gateway: Gateway, byCategory: CategoryEndpoints, question: Question): Promise<Answer> {
  const { descriptors } = question;
  if (descriptors.length === 0 || descriptors.length > MAX_DESCRIPTORS) {
    throw new GrpcError(INVALID_ARGUMENT, `1 to ${MAX_DESCRIPTORS} descriptors are expected`);
  }
  const hits = descriptors.map((descriptor) => descriptor.hits ?? question.hits);
  if (hits.some((each) => each > MAX_LIMIT)) throw new GrpcError(INVALID_ARGUMENT, `hits may be ${MAX_LIMIT} at most`);
  const { policy } = gateway;
  const subjects: Subject[] = [];
  for (const descriptor of descriptors) {
    try {
      subjects.push(await subjectOf(policy, byCategory, descriptor));
    } catch (error) {
      if (error instanceof GrpcError) gateway.log.wrongQuestion(error);
      throw error;
    }
  }
  const judged: Judged[] = [];
  for (const [index, subject] of subjects.entries()) judged.push(await judge(gateway, policy, subject, hits[index]!));
  const refused = judged.find(({ status }) => status.code === OVER_LIMIT);
  for (const { decision } of judged) if (decision?.allowed === true) settle(decision, refused);
  const shown = refused ?? judged.reduce((least, one) => (one.status.remaining < least.status.remaining ? one : least));
  return {
    code: shown.status.code,
    statuses: judged.map(({ status }) => status),
    headers: shown.headers,
    body: shown.body,
  };
}

/** The end of a request is unknown, so that it counts neither as under way nor as CPU time. */
function settle(decision: Admission, refused: Judged | undefined): void {
  if (refused !== undefined) return decision.giveBack();
  decision.end(0);
}

async function judge(gateway: Gateway, policy: Policy, subject: Subject, hits: number): Promise<Judged> {
  const { limiter } = gateway;
  const { caller } = subject;
  if ('refused' in subject || subject.endpoint === undefined || hits === 0) {
    const category = ('refused' in subject ? undefined : subject.endpoint?.category) ?? 'core';
    const shown = (await limiter.status(caller))[category];
    const isOver = 'refused' in subject || (subject.endpoint !== undefined && shown.remaining === 0);
    const body = 'refused' in subject ? JSON.stringify({ message: subject.refused }) : '';
    const retry: Record<string, string> = 'refused' in subject ? { 'retry-after': '1' } : {};
    return { hits, status: statusOf(policy, isOver, category, shown), headers: retry, body };
  }
  const decision = await limiter.admit(caller, subject.endpoint, subject.points * hits, hits);
  gateway.topCallers.note(caller.key, decision.allowed);
  if (!decision.allowed) return refusal(gateway, policy, decision, hits);
  const { resource } = decision;
  return {
    decision,
    hits,
    status: statusOf(policy, false, resource, decision),
    headers: headersOf(decision),
    body: '',
  };
}

function refusal(gateway: Gateway, policy: Policy, decision: Refusal, hits: number): Judged {
  gateway.log.refusal(decision);
  const { headers, body } = refusalOf(decision, policy.refusal);
  const reset = Math.floor(Date.now() / 1000) + decision.retryAfterSeconds;
  return { decision, hits, status: statusOf(policy, true, decision.resource, { ...decision, reset }), headers, body };
}

function statusOf(
  { config }: Policy,
  isOver: boolean,
  category: Category,
  { limit, remaining, reset }: Readonly<{ limit: number; remaining: number; reset: number }>,
): Status {
  return {
    code: isOver ? OVER_LIMIT : OK,
    limit,
    windowSeconds: config.categories[category].windowSeconds,
    name: category,
    remaining,
    resetSeconds: reset - Math.floor(Date.now() / 1000),
  };
}
