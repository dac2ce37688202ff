import { EngineError } from '../lib/errors.ts';
import type { Exits } from './exits.ts';
import { readLog, type LogQuery } from './log-file.ts';
import { isAlive } from './state.ts';
import type { Container, ContainerStore } from './store.ts';

type Needs = { containers: ContainerStore; exits: Exits };

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

/** What can be refused, before the head is sent. Throws `invalid`, `notFound`, `conflict` (nothing to read). */
export function prepareLogs(
  engine: Needs,
  ref: string,
  request: LogsRequest,
): { container: Container; query: LogQuery } {
  if (request.stdout !== true && request.stderr !== true) {
    throw new EngineError('invalid', 'Bad parameters: you must choose at least one stream');
  }
  const container = engine.containers.find(ref);
  if (container.logPath === '') throw new EngineError('conflict', 'configured logging driver does not support reading');
  const query: LogQuery = {
    stdout: request.stdout ?? false,
    stderr: request.stderr ?? false,
    timestamps: request.timestamps ?? false,
    details: request.details ?? false,
    framed: !container.config.Tty,
    tail: tailOf(request.tail),
    ...(request.since !== undefined && { since: timeOf('since', request.since) }),
    ...(request.until !== undefined && request.until !== '0' && { until: timeOf('until', request.until) }),
  };
  return { container, query };
}

/** The pieces of the log; with `follow` until the container ends or the signal says so. Specification, endpoint 5. */
export function readContainerLog(
  engine: Needs,
  { container, query }: { container: Container; query: LogQuery },
  follow: boolean,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { id, logPath } = container;
  const state = engine.containers.get(id)?.state;
  if (!follow || state === undefined || !(isAlive(state) || state.status === 'starting'))
    return readLog(logPath, query);
  return readLog(logPath, query, { ended: engine.exits.recorded(id), signal });
}

function tailOf(text = 'all'): number | 'all' {
  const number = Number(text);
  // A negative number, and what is none, mean everything, as in docker.
  return text === '' || text === 'all' || !Number.isInteger(number) || number < 0 ? 'all' : number;
}

/** Seconds since 1970 with an optional fraction, or RFC 3339. Throws `invalid`. */
function timeOf(name: string, text: string): Temporal.Instant {
  const seconds = /^(\d{1,12})(?:\.(\d{1,9}))?$/.exec(text);
  if (seconds !== null) {
    return new Temporal.Instant(BigInt(seconds[1]!) * 1_000_000_000n + BigInt((seconds[2] ?? '').padEnd(9, '0')));
  }
  try {
    return Temporal.Instant.from(text);
  } catch (error) {
    throw new EngineError('invalid', `invalid value for "${name}": ${text}`, { cause: error });
  }
}
