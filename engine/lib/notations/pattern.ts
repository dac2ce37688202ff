import { RE2JS, RE2JSSyntaxException } from 're2js';

import { EngineError } from '../errors.ts';

/** Whether a text matches. */
export type Pattern = (text: string) => boolean;

/** Far longer than patterns in use, far shorter than one that takes noticeable time. */
const LIMIT_CHARACTERS = 256;
const LIMIT_STATES = 2000;
const MAX_TEXT_LENGTH = 4096;

type Compiled = Readonly<{ matches: Pattern; states: number }>;

/** `^`, text without a meaning in patterns, `$`: names as scripts write them. */
const PLAIN = /^(?<from>\^?)(?<text>[\w/:@-]*)(?<to>\$?)$/;

/**
 * Compiles a regular expression in Go's syntax, which clients of dockerd write; undefined if it is not one. Matching
 * takes time linear in the text, because a client's pattern runs on the event loop. Throws `invalid` for a pattern that
 * is too large. Texts of more than 4,096 characters match no pattern but plain text.
 */
export function parsePattern(written: string): Pattern | undefined {
  return compile(written)?.matches;
}

/**
 * Compiles patterns that are tried one after the other on the same text, and leaves out those that are none. Throws `invalid`
 * if they are too large together: one after the other, each would hold up other requests.
 */
export function parsePatterns(all: Iterable<string>): Pattern[] {
  const patterns: Pattern[] = [];
  let states = 0;
  for (const written of all) {
    const compiled = compile(written);
    if (compiled === undefined) continue;
    patterns.push(compiled.matches);
    states += compiled.states;
    if (states > LIMIT_STATES) {
      throw new EngineError('invalid', 'the patterns of the filter are too large together');
    }
  }
  return patterns;
}

function compile(written: string): Compiled | undefined {
  if (written.length > LIMIT_CHARACTERS) {
    throw new EngineError(
      'invalid',
      `the pattern has more than ${LIMIT_CHARACTERS} characters: ${written.slice(0, 40)}…`,
    );
  }
  return plainPattern(written) ?? regularExpression(written);
}

/** A pattern that costs no more than a comparison. */
function plainPattern(written: string): Compiled | undefined {
  const { from, text = '', to } = PLAIN.exec(written)?.groups ?? {};
  if (from === undefined) return undefined;
  if (from !== '' && to !== '') return { matches: (other) => other === text, states: 0 };
  if (from !== '') return { matches: (other) => other.startsWith(text), states: 0 };
  return { matches: (other) => (to === '' ? other.includes(text) : other.endsWith(text)), states: 0 };
}

function regularExpression(written: string): Compiled | undefined {
  try {
    const expression = RE2JS.compile(written);
    const states = expression.programSize();
    if (states > LIMIT_STATES) throw new EngineError('invalid', `the pattern repeats too much: ${written}`);
    return { matches: (text) => text.length <= MAX_TEXT_LENGTH && expression.test(text), states };
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return undefined;
    throw error;
  }
}
