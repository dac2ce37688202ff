import type { Identity, Question } from '../identity/identify.ts';
import { IntrospectionFailed } from '../identity/introspection.ts';
import type { Pace } from '../identity/turns.ts';
import { answerMessage } from './answer.ts';
import type { Exchange } from './exchange.ts';

/** `unavailable`: the forge did not answer. */
export type Found = Exclude<Identity, Question> | 'unavailable';

/**
 * Asks the forge whose credential it is. Returns undefined when the request was answered here or its client has gone.
 *
 * Meanwhile the request counts on its address, so that guesses are limited. An address that has used up its limit
 * may still ask, but slowly: a valid credential must not be refused for what others at its address do.
 */
export async function askForge(exchange: Exchange, question: Question): Promise<Found | undefined> {
  if (question.wasKnown) return await answerTo(exchange, question, 'urgent');
  const { gateway, policy, caller } = exchange;
  const deposit = await gateway.limiter.admit(caller, policy.routes.unknownCredential);
  if (exchange.closed) deposit.end(0); // gone while the store was asked
  if (exchange.closed) return undefined;
  exchange.decision = deposit;
  exchange.whenClosed = { clientClosed: () => deposit.end(0) }; // waiting for the forge is not the upstream's time
  const found = await answerTo(exchange, question, deposit.allowed ? 'normal' : 'slow');
  if (exchange.closed) return undefined;
  if (found === 'unavailable' && !deposit.allowed) {
    answerUnavailable(exchange);
    return undefined;
  }
  // From here on the request counts on its actual caller.
  exchange.decision = undefined;
  exchange.whenClosed = undefined;
  if (deposit.allowed) deposit.giveBack();
  return found;
}

export function answerUnavailable(exchange: Exchange): void {
  answerMessage(exchange, 503, 'Credentials cannot be checked at the moment.', ['retry-after', '1']);
}

async function answerTo({ gateway, caller }: Exchange, question: Question, pace: Pace): Promise<Found> {
  try {
    return await question.ask(caller.key, pace);
  } catch (error) {
    if (!(error instanceof IntrospectionFailed)) throw error;
    gateway.counts.identityFailures += 1;
    gateway.log.failure('identity source', error);
    return 'unavailable';
  }
}
