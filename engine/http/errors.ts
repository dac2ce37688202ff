import { EngineError, type ErrorKind } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import type { Reply } from './reply.ts';
import type { ApiRequest } from './request.ts';
import { ClientGone } from './streams/client-gone.ts';
import { isBelow, type ApiVersion } from './versions/api-version.ts';

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

/** The status of an error on a route; anything but an `EngineError` is 500. */
export function errorStatus(failure: unknown, apiVersion: ApiVersion, overrides: ErrorStatuses = {}): number {
  const error = firstOf(failure);
  if (!(error instanceof EngineError)) return 500;
  const { kind } = error;
  return statusAt(overrides[kind], apiVersion) ?? statusAt(statusOf[kind], apiVersion)!;
}

function statusAt(status: number | StatusByVersion | undefined, apiVersion: ApiVersion): number | undefined {
  if (typeof status !== 'object') return status;
  return isBelow(apiVersion, status.below) ? status.status : status.from;
}

/** Logs an unexpected error, once, with its stack: also one that is told within a stream. */
export function logUnexpected(error: unknown, request: ApiRequest): void {
  const isAbort = error instanceof ClientGone || (error !== undefined && error === request.raw.errored);
  const isFailedUndo = error instanceof SuppressedError;
  if (isFailedUndo || !(error instanceof EngineError || isAbort)) {
    request.log.error({ err: error, method: request.method, url: request.url }, 'a request failed unexpectedly');
  }
}

/**
 * Answers an error by its kind. After the head of a stream it closes the connection: the client would wait for the rest for
 * ever.
 */
export function answerError(error: unknown, request: ApiRequest, reply: Reply): void {
  const status = errorStatus(error, request.apiVersion, request.route?.config.errors);
  if (status === 304 && !reply.isTakenOver) {
    // A 304 has no body; clients take any status below 400 as success.
    reply.code(304).send();
    return;
  }
  logUnexpected(error, request);
  if (!reply.isTakenOver) refuse(reply.code(status), messageOf(error), isBelow(request.apiVersion, '1.24'));
  else if (!reply.raw.writableEnded) request.raw.socket.destroy();
}

/** Exactly `{"message": …}`, or for clients from before 1.24 the text alone. */
export function refuse(reply: Reply, message: string, asText: boolean): void {
  if (asText) reply.type('text/plain; charset=utf-8').send(`${message}\n`);
  else reply.type('application/json').send({ message });
}

/** The first failure, when its undo has failed too. */
function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error;
}
