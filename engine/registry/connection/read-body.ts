import { RegistryError } from '../errors.ts';
import type { Answer } from './transport.ts';

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
