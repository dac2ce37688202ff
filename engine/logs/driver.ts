import type { Container } from '../containers/store.ts';
import type { ShimLog } from '../runtime/shim-options.ts';
import type { Follow, LogQuery } from './log-file.ts';

export type LogOptions = Readonly<Record<string, string>>;

/** A kind of log: where the output of a container goes beside its attached clients, and how it is read back. */
export type LogDriver = Readonly<{
  /** As a client asks for it and as /info lists it. */
  name: string;
  /** Those that it knows beside the ones of every driver. */
  options: readonly string[];
  /** Refuses values now, and not each time the container starts or the log is read. Throws `invalid`. */
  check?(options: LogOptions): void;
  /** Its file in the container's folder; without it the driver keeps none. */
  path?(folder: string, containerId: string): string;
  /** What the shim is told when the container starts; undefined: it keeps nothing. */
  shimLog(container: Container): ShimLog | undefined;
  /** Pieces of the log as the query asks for them. Without it the log cannot be read. */
  read?(container: Container, query: LogQuery, follow?: Follow): AsyncGenerator<Buffer>;
}>;
