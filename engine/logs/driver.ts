import type { Container } from '../containers/store.ts';
import type { ShimLog } from '../runtime/shim/shim-options.ts';
import type { Sender, SenderContext } from './delivery/sender.ts';
import type { Follow, LogQuery } from './log-file.ts';

export type LogOptions = Readonly<Record<string, string>>;

/** Pieces of the log as the query asks for them. */
export type LogReader = (query: LogQuery, follow?: Follow) => AsyncGenerator<Buffer>;

/** A kind of log: where the output of a container goes beside its attached clients, and how it is read back. */
export type LogDriver = Readonly<{
  /** As a client asks for it and as /info lists it. */
  name: string;
  /** Those that it knows beside the ones of every driver. */
  options: readonly string[];
  /** What is said of another one, where that is not what most drivers say. */
  unknown?(option: string): string;
  /** Refuses values now, and not each time the container starts or the log is read. Throws `invalid`. */
  check?(options: LogOptions): void;
  /** The file in the container's folder that the shim writes; without it the driver keeps none. */
  path?(folder: string, containerId: string): string;
  /** Whether clients are told that path, because the format of the file is known to them. */
  showsPath: boolean;
  /** What the shim is told when the container starts; undefined: it keeps nothing. */
  shimLog(container: Container): ShimLog | undefined;
  /** Without it, or where it gives nothing, the log cannot be read. */
  reader?(container: Container): LogReader | undefined;
  /** To whom the lines of the file go. */
  deliver?(context: SenderContext): Sender | Promise<Sender>;
}>;
