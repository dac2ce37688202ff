import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

import type { Engine } from '../../engine.ts';
import { parseTime } from '../../http/values/times.ts';
import { EngineError } from '../../lib/errors.ts';
import type { LogReader } from '../../logs/driver.ts';
import { logDriverOf } from '../../logs/drivers.ts';
import { logAttributes } from '../../logs/log-attributes.ts';
import type { LogQuery } from '../../logs/log-file.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';

type Needs = Pick<Engine, 'containers' | 'runs'>;

/** The parameters as they come: seconds (with a fraction) or RFC 3339, `all` or a number. */
export type LogsRequest = Readonly<{
  details?: boolean;
  follow?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  timestamps?: boolean;
  since?: string;
  until?: string;
  tail?: string;
}>;

type PreparedLog = Readonly<{ container: Container; query: LogQuery; read: LogReader }>;

/** Makes all checks before the head is sent. Throws `invalid`, `notFound`, `conflict` (nothing to read). */
export function prepareLogs(engine: Needs, ref: string, request: LogsRequest): PreparedLog {
  if (request.stdout !== true && request.stderr !== true) {
    throw new EngineError('invalid', 'Bad parameters: you must choose at least one stream');
  }
  const container = engine.containers.find(ref);
  const read = logDriverOf(container).reader?.(container);
  if (read === undefined) throw new EngineError('conflict', 'configured logging driver does not support reading');
  const query: LogQuery = {
    stdout: request.stdout ?? false,
    stderr: request.stderr ?? false,
    timestamps: request.timestamps ?? false,
    details: request.details === true ? logAttributes(container) : undefined,
    framed: !container.config.Tty,
    tail: tailOf(request.tail),
    since: timeOf('since', request.since),
    until: timeOf('until', request.until),
  };
  return { container, query, read };
}

/** The pieces of the log; with `follow` until the container ends or the signal aborts. Specification, endpoint 5. */
export function readContainerLog(
  engine: Needs,
  { container: { id }, query, read }: PreparedLog,
  follow: boolean,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { state, logPath = '' } = engine.containers.get(id) ?? {};
  const runs = state !== undefined && (isAlive(state) || state.status === 'starting');
  // The start creates the folder, and may be about to.
  if (follow && state?.status === 'starting' && logPath !== '') {
    mkdirSync(dirname(logPath), { recursive: true, mode: 0o710 });
  }
  // As in docker a follow ends with the run, also when a restart policy begins the next one.
  return read(query, follow && runs ? { ended: engine.runs.of(id).nextEnd(signal), signal } : undefined);
}

function tailOf(text = 'all'): number | 'all' {
  const number = Number(text);
  // A negative or invalid number means everything, as in docker.
  return text === '' || text === 'all' || !Number.isInteger(number) || number < 0 ? 'all' : number;
}

/**
 * Seconds since 1970 with an optional fraction, or RFC 3339; an empty text or 0 is no restriction. Throws `invalid`.
 */
function timeOf(name: string, text = ''): Temporal.Instant | undefined {
  return text === '' || text === '0' ? undefined : parseTime(name, text);
}
