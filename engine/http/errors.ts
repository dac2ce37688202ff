import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';

import { EngineError, type ErrorKind } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { ClientGone } from './streams/client-gone.ts';
import { COMPLETE, isBelow, type ApiVersion } from './versions/api-version.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Statuses of this route that differ from the table, such as `{ conflict: { below: '1.25', status: 500 } }`. */
    errors?: ErrorStatuses;
  }
}

/** `from`: the status from that version on; without it the table's. */
type StatusByVersion = Readonly<{ below: ApiVersion; status: number; from?: number }>;
export type ErrorStatuses = Readonly<Partial<Record<ErrorKind, number | StatusByVersion>>>;

/**
 * The only table from the kind of an error to its HTTP status: only those that the specification lists for endpoints,
 * or as recurrent. Other kinds are a bad parameter or a failure of the server. Only an unimplemented endpoint has a
 * status of its own, so that clients do not retry it.
 */
const statusOf: Readonly<Record<ErrorKind, number | Required<StatusByVersion>>> = {
  notModified: 304,
  invalid: 400,
  unauthorized: 500,
  forbidden: 403,
  notFound: 404,
  notInCluster: { below: '1.25', status: 406, from: 503 },
  conflict: 409,
  tooLarge: 400,
  failed: 500,
  notImplemented: 501,
  unavailable: 500,
};

/** The status of an error on a route; anything but an `EngineError` or a refusal of the server itself is 500. */
export function errorStatus(failure: unknown, apiVersion: ApiVersion, overrides: ErrorStatuses = {}): number {
  const error = firstOf(failure);
  if (!(error instanceof EngineError)) return isRefusal(error) ? error.statusCode : 500;
  const { kind } = error;
  return statusAt(overrides[kind], apiVersion) ?? statusAt(statusOf[kind], apiVersion)!;
}

function statusAt(status: number | StatusByVersion | undefined, apiVersion: ApiVersion): number | undefined {
  if (typeof status !== 'object') return status;
  return isBelow(apiVersion, status.below) ? status.status : status.from;
}

/** Logs an unexpected error, once, with its stack: also one that is told within a stream. */
export function logUnexpected(error: unknown, request: FastifyRequest): void {
  const isAbort = error instanceof ClientGone || (error !== undefined && error === request.raw.errored);
  const isFailedUndo = error instanceof SuppressedError;
  if (isFailedUndo || !(error instanceof EngineError || isRefusal(error) || isAbort)) {
    request.log.error({ err: error, method: request.method, url: request.url }, 'a request failed unexpectedly');
  }
}

/** Answers an error by its kind. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const status = errorStatus(error, request.apiVersion, request.routeOptions.config.errors);
  if (status === 304) {
    // A 304 has no body; clients take any status below 400 as success.
    reply.code(304).send();
    return;
  }
  logUnexpected(error, request);
  refuse(reply.code(status), messageOf(error), isBelow(request.apiVersion, '1.24'));
}

/** Exactly `{"message": …}`, or for clients from before 1.24 the text alone. */
export function refuse(reply: FastifyReply, message: string, asText: boolean): void {
  if (asText) reply.type('text/plain; charset=utf-8').send(`${message}\n`);
  else reply.send({ message });
}

/** Answers an error before there is a route, where no hook runs: bytes, because of all else Fastify names the charset. */
export function answerOutsideOfRoutes(error: unknown, reply: FastifyReply): void {
  reply.code(errorStatus(error, COMPLETE)).send(Buffer.from(JSON.stringify({ message: messageOf(error) })));
}

/** The first failure, when its undo has failed too. */
function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error;
}

/** The server's own refusals (a URL it cannot decode, a connection's limits) carry a status below 500. */
function isRefusal(error: unknown): error is FastifyError & { statusCode: number } {
  if (!(error instanceof Error) || !('statusCode' in error)) return false;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
}
