import { RE2JS, RE2JSSyntaxException } from 're2js';

import { EngineError } from '../errors.ts';

/** Whether a text matches. */
export type Pattern = (text: string) => boolean;

/** Far longer than patterns in use, far shorter than one that takes noticeable time. */
const LIMIT_CHARACTERS = 256;
const LIMIT_STATES = 2000;
const MAX_TEXT_LENGTH = 4096;

/**
 * Compiles a regular expression in Go's syntax, which clients of dockerd write; undefined if it is not one. Matching
 * takes time linear in the text, because a client's pattern runs on the event loop. Throws `invalid` for a pattern that
 * is too large. Texts of more than 4,096 characters never match.
 */
export function parsePattern(written: string): Pattern | undefined {
  if (written.length > LIMIT_CHARACTERS) {
    throw new EngineError(
      'invalid',
      `the pattern has more than ${LIMIT_CHARACTERS} characters: ${written.slice(0, 40)}…`,
    );
  }
  try {
    const expression = RE2JS.compile(written);
    if (expression.programSize() > LIMIT_STATES) {
      throw new EngineError('invalid', `the pattern repeats too much: ${written}`);
    }
    return (text) => text.length <= MAX_TEXT_LENGTH && expression.test(text);
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return undefined;
    throw error;
  }
}
