import type { Reply } from '../reply.ts';
import { namesVersion, type ApiRequest } from '../request.ts';
import { isBelow, type ApiVersion } from './api-version.ts';

/**
 * One change of the API, for older clients: converts their requests to today's meaning, and the answers to the form
 * that they know. Steps are pure; operations know only the newest version.
 */
export type Step<Body = unknown, Answer = unknown> = Readonly<{
  /** The version of the change. */
  below: ApiVersion;
  /** Only for clients that name their version. */
  named?: true;
  /** Converts a validated body to today's terms. */
  request?(body: Body): Body;
  /** Converts an answer to the client's terms; not for a route that sends text. */
  response?(answer: Answer): Answer;
  /** The status of a success. */
  status?: number;
}>;

/** Newest first. */
export type Steps<Body = unknown, Answer = unknown> = readonly Step<Body, Answer>[];

/** The steps between a request and today, newest first. */
export function stepsFor<Body, Answer>(
  steps: Steps<Body, Answer>,
  client: Readonly<{ apiVersion: ApiVersion; isNamed: boolean }>,
): Steps<Body, Answer> {
  return steps.filter(({ below, named }) => isBelow(client.apiVersion, below) && (client.isNamed || named !== true));
}

/** A request goes up through the versions, its answer down. */
export function upgradedBody<Body, Answer>(steps: Steps<Body, Answer>, body: Body): Body {
  return steps.toReversed().reduce((read, { request }) => request?.(read) ?? read, body);
}

export function downgradedAnswer<Body, Answer>(steps: Steps<Body, Answer>, answer: Answer): Answer {
  return steps.reduce((told, { response }) => response?.(told) ?? told, answer);
}

/** The oldest change counts. */
export function statusFor(steps: Steps, status: number): number {
  return steps.findLast((step) => step.status !== undefined)?.status ?? status;
}

/** For a route that writes its answers itself: the conversion for this client; undefined without one. */
export function answerFor<Answer>(
  steps: Steps<unknown, Answer>,
  request: ApiRequest,
): ((answer: Answer) => Answer) | undefined {
  const own = stepsOf(steps, request);
  return own.length === 0 ? undefined : (answer) => downgradedAnswer(own, answer);
}

/** Converts a validated body to today's terms. */
export function upgradeBody(steps: Steps = [], request: ApiRequest): unknown {
  return upgradedBody(stepsOf(steps, request), request.body);
}

/** Converts a successful answer to the client's terms; text is JSON already, or none. */
export function downgradeReply(steps: Steps = [], request: ApiRequest, reply: Reply): void {
  if (reply.statusCode >= 300) return;
  const own = stepsOf(steps, request);
  const { payload } = reply;
  if (typeof payload === 'object' && payload !== null && !(payload instanceof Uint8Array)) {
    reply.payload = downgradedAnswer(own, payload);
  }
  reply.code(statusFor(own, reply.statusCode));
}

function stepsOf<Body, Answer>(steps: Steps<Body, Answer>, request: ApiRequest): Steps<Body, Answer> {
  if (steps.length === 0) return steps;
  return stepsFor(steps, { apiVersion: request.apiVersion, isNamed: namesVersion(request) });
}
