import { logUnexpected } from '../../http/errors.ts';
import type { Reply } from '../../http/reply.ts';
import type { ApiRequest } from '../../http/request.ts';
import { openStream, type ResponseStream } from '../../http/streams/stream.ts';
import { messageOf } from '../../lib/failure-message.ts';
import type { Progress, Report } from './progress.ts';

/**
 * Answers with the lines that `work` reports. The answer begins with the first line, so an error before it has a status
 * of its own; a later error is the last line.
 */
export async function streamProgress(
  request: ApiRequest,
  reply: Reply,
  work: (report: Report) => Promise<void>,
): Promise<void> {
  const opened: { stream?: ResponseStream } = {};
  const write = (line: Progress | object): void => {
    opened.stream ??= openStream(reply);
    const { stream } = opened;
    if (stream.isBehind && isPassing(line)) return; // a client that reads nothing costs no memory
    stream.line(line).catch(() => stream.output.destroy()); // the client sees a broken answer
  };
  try {
    await work(write);
  } catch (error) {
    if (opened.stream === undefined) throw error;
    logUnexpected(error, request);
    const message = messageOf(error);
    write({ errorDetail: { message }, error: message });
  }
  opened.stream ??= openStream(reply);
  opened.stream.end();
}

/** Whether a later line says more: bytes of something that has more of them. */
function isPassing({ progressDetail: { current = 0, total = 0 } = {} }: Progress): boolean {
  return current < total;
}
