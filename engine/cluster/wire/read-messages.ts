import type { Readable } from 'node:stream';

import type { Static, TSchema } from 'typebox';

import { bytesPassed } from '../../host/garbage.ts';
import { sleep, type Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { Allowance, type ChannelLimits } from './allowance.ts';
import { mistakeIn, parseLine } from './channel.ts';

/**
 * The messages of a connection, read no faster than they are taken; ends with the connection, however that ends. Throws
 * `invalid` for a line against the schema, a union by the field `say`.
 */
export async function* readMessages<S extends TSchema>(
  stream: Readable,
  { schema, limits, clock }: Readonly<{ schema: S; limits: ChannelLimits; clock: Clock }>,
): AsyncGenerator<Static<S>> {
  const check = lazyCheck(schema);
  const allowance = new Allowance(limits);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunksOf(stream)) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    rest += first;
    for (const next of others) {
      const message = parseLine(rest.length > limits.maxLineLetters ? '' : rest, limits.maxValues);
      rest = next;
      if (!check.Check(message)) throw new EngineError('invalid', mistakeIn(schema, message));
      yield message;
    }
    if (rest.length > limits.maxLineLetters) throw new EngineError('invalid', 'a line is too long');
    const waitMs = allowance.take(chunk.length);
    bytesPassed(chunk.length);
    if (waitMs > 0) await sleep(clock, waitMs);
  }
}

/** A connection that breaks has ended. */
async function* chunksOf(stream: Readable): AsyncGenerator<Buffer> {
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    if (!stream.destroyed) throw error;
  }
}
