import { pino, stdSerializers, type Logger } from 'pino';

import { currentRequest } from './lib/request-id.ts';

/** The most that waits for space on the disk. */
const WAITING_BYTES = 256 * 1024;

/**
 * The daemon's log, on stdout. What cannot be written, as the disk under it is full, waits for the next line or is lost:
 * without somebody who listens for the error, the log would throw at whoever reports a failure, and end the daemon.
 */
export function openLog(level: string): Logger {
  const destination = pino.destination({ dest: 1, sync: true, maxLength: WAITING_BYTES });
  destination.on('error', () => undefined);
  return pino({ level, serializers: { err: describeError }, mixin: ofRequest }, destination);
}

/** Every line says which request it is due to, if any. */
function ofRequest(): object {
  const request = currentRequest();
  return request === undefined ? {} : { request };
}

/** Names both errors of a failed undo after another failure. */
export function describeError(error: unknown): unknown {
  if (error instanceof SuppressedError) {
    return { ...serialized(error), error: describeError(error.error), suppressed: describeError(error.suppressed) };
  }
  return serialized(error);
}

function serialized(error: unknown): object {
  return error instanceof Error ? stdSerializers.err(error) : { message: String(error) };
}
