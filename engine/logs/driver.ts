import type { ShimLog } from '../runtime/shim/shim-options.ts';
import type { Sender, SenderContext } from './delivery/sender.ts';
import type { Follow, LogQuery } from './log-file.ts';
import type { LoggedContainer } from './logged-container.ts';

export type LogOptions = Readonly<Record<string, string>>;

/** Pieces of the log as the query asks for them. */
export type LogReader = (query: LogQuery, follow?: Follow) => AsyncGenerator<Buffer>;

/** A kind of log: the destination of a container's output besides its attached clients, and how it is read back. */
export type LogDriver = Readonly<{
  /** The name in requests and in /info. */
  name: string;
  /** Its options besides those of every driver. */
  options: readonly string[];
  /** The error for an unknown option, if it differs from that of most drivers. */
  unknown?(option: string): string;
  /** Refuses values now, and not each time the container starts or the log is read. Throws `invalid`. */
  check?(options: LogOptions): void;
  /** The file in the container's folder that the shim writes; without it the driver keeps none. */
  path?(folder: string, containerId: string): string;
  /** Whether clients see that path, because they know the format of the file. */
  showsPath: boolean;
  /** The shim's options for a run; undefined: no file. */
  shimLog(container: LoggedContainer): ShimLog | undefined;
  /** Without it, or when it returns undefined, the log cannot be read. */
  reader?(container: LoggedContainer): LogReader | undefined;
  /** The receiver of the lines of the file. */
  deliver?(context: SenderContext): Sender | Promise<Sender>;
}>;
