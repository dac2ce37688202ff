import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';

import { isBelow, namesVersion, type ApiVersion } from './api-version.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The steps between this route and clients of older versions. */
    steps?: Steps;
  }
}

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
  request: FastifyRequest,
): ((answer: Answer) => Answer) | undefined {
  const own = stepsFor(steps, { apiVersion: request.apiVersion, isNamed: namesVersion(request) });
  return own.length === 0 ? undefined : (answer) => downgradedAnswer(own, answer);
}

/** Wraps a route's handler with its steps; a route without steps stays unchanged. */
export function addSteps(route: RouteOptions): void {
  const { steps } = route.config ?? {};
  if (steps === undefined) return;
  const of = (request: FastifyRequest): Steps =>
    stepsFor(steps, { apiVersion: request.apiVersion, isNamed: namesVersion(request) });
  if (steps.some(({ request }) => request !== undefined)) {
    route.preHandler = (request, _reply, done) => {
      request.body = upgradedBody(of(request), request.body);
      done();
    };
  }
  if (steps.some(({ response }) => response !== undefined)) {
    route.preSerialization = (request, reply, answer, done) => {
      done(null, isSuccess(reply) ? downgradedAnswer(of(request), answer) : answer);
    };
  }
  if (steps.some(({ status }) => status !== undefined)) {
    route.onSend = (request, reply, payload, done) => {
      if (isSuccess(reply)) reply.code(statusFor(of(request), reply.statusCode));
      done(null, payload);
    };
  }
}

function isSuccess({ statusCode }: FastifyReply): boolean {
  return statusCode < 300;
}
