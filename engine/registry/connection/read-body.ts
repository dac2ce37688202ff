import { readWhole } from '../../lib/bytes/read-whole.ts';
import { systemClock } from '../../lib/clock.ts';
import { RegistryError } from '../errors.ts';
import type { Answer } from './direct.ts';

/** More of an unwanted body is not waited for: a new connection costs less. */
const DISCARDED_BYTES = 128 * 1024;
const DISCARD_TIMEOUT_MS = 5000;
/** The time for a whole body, none of which has more than some megabytes. A server may send it byte by byte, and is never silent. */
const BODY_TIMEOUT_MS = 300_000;

/** A whole body that must not be larger than this; `what` names it in the refusal. */
export async function readBody(
  answer: Answer,
  limitBytes: number,
  what: string,
  timeoutMs = BODY_TIMEOUT_MS,
): Promise<Buffer> {
  if (Number(answer.headers['content-length'] ?? 0) <= limitBytes) {
    const late = new RegistryError(`${what} did not come to its end within ${timeoutMs / 1000} seconds`);
    using _timer = endAfter(answer, timeoutMs, late);
    const read = await readWhole(answer.body, limitBytes);
    if (read !== undefined) return read;
  }
  answer.body.on('error', () => undefined).destroy();
  throw new RegistryError(`${what} is larger than the limit of ${limitBytes} bytes`);
}

export async function readText(answer: Answer, limitBytes: number, what: string): Promise<string> {
  return (await readBody(answer, limitBytes, what)).toString();
}

/** Reads a body that nobody wants, so that its connection can be used again. */
export async function discard(answer: Answer, timeoutMs = DISCARD_TIMEOUT_MS): Promise<void> {
  const { body } = answer;
  let bytes = 0;
  body.on('error', () => undefined);
  using _timer = endAfter(answer, timeoutMs);
  try {
    for await (const part of body) {
      bytes += (part as Buffer).length;
      if (bytes > DISCARDED_BYTES) return; // leaving the loop ends the connection
    }
  } catch {
    // the status has come, and nothing else was wanted
  }
}

function endAfter({ body }: Answer, timeoutMs: number, error?: Error): Disposable {
  return systemClock.after(timeoutMs, () => body.destroy(error));
}
