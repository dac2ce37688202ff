import { RE2JS, RE2JSSyntaxException } from 're2js';

import { EngineError } from './errors.ts';

/** Whether a text is like it. */
export type Pattern = (text: string) => boolean;

/** Far above what anybody writes by hand, far below what takes noticeable time. */
const LIMIT_CHARACTERS = 256;
const LIMIT_STATES = 2000;
const LONGEST_TEXT = 4096;

/**
 * A regular expression in Go's syntax, which is what clients of dockerd write; undefined for what is none. Its time is
 * linear in the text, whatever the pattern: a client's pattern runs on the event loop. Throws `invalid` for one that is
 * too large. No text of more than 4,096 characters is like any.
 */
export function parsePattern(written: string): Pattern | undefined {
  if (written.length > LIMIT_CHARACTERS) {
    throw new EngineError(
      'invalid',
      `a pattern has more than ${LIMIT_CHARACTERS} characters: ${written.slice(0, 40)}…`,
    );
  }
  try {
    const expression = RE2JS.compile(written);
    if (expression.programSize() > LIMIT_STATES) {
      throw new EngineError('invalid', `a pattern repeats too much: ${written}`);
    }
    return (text) => text.length <= LONGEST_TEXT && expression.test(text);
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return undefined;
    throw error;
  }
}
