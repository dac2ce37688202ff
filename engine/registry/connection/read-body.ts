import { RegistryError } from '../errors.ts';
import type { Answer } from './direct.ts';

/** More of an unwanted body is not waited for: a new connection costs less. */
const DISCARDED_BYTES = 128 * 1024;

/** A whole body that must not be larger than this; `what` names it in the refusal. */
export async function readBody(answer: Answer, limitBytes: number, what: string): Promise<Buffer> {
  const stated = Number(answer.headers['content-length'] ?? 0);
  const parts: Buffer[] = [];
  let bytes = 0;
  if (stated <= limitBytes) {
    for await (const part of answer.body) {
      bytes += (part as Buffer).length;
      if (bytes > limitBytes) break;
      parts.push(part as Buffer);
    }
  }
  if (stated <= limitBytes && bytes <= limitBytes) return Buffer.concat(parts);
  answer.body.on('error', () => undefined).destroy();
  throw new RegistryError(`${what} is larger than the limit of ${limitBytes} bytes`);
}

export async function readText(answer: Answer, limitBytes: number, what: string): Promise<string> {
  return (await readBody(answer, limitBytes, what)).toString();
}

/** Reads a body that nobody wants, so that its connection can be used again. */
export async function discard({ body }: Answer): Promise<void> {
  let bytes = 0;
  body.on('error', () => undefined);
  try {
    for await (const part of body) {
      bytes += (part as Buffer).length;
      if (bytes > DISCARDED_BYTES) return; // leaving the loop ends the connection
    }
  } catch {
    // the status has come, and nothing else was wanted
  }
}
