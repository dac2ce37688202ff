import { MAX_LIMIT, MAX_WINDOW_SECONDS } from '@gantry/limiter/rules.ts';
import { WINDOW_FORMS } from '@gantry/limiter/window-form.ts';
import { Type } from 'typebox';

export const closed = { additionalProperties: false } as const;
/** An entry of a list by id. Without a default of the whole, those of its keys are not filled in. */
export const entry = { ...closed, default: {} } as const;
export const count = (description: string, initial: number, minimum = 0) =>
  Type.Integer({ default: initial, minimum, description });
export const text = (description: string, initial = '') => Type.String({ default: initial, description });
export const list = (description: string, initial: string[] = []) =>
  Type.Array(Type.String(), { default: initial, description });

const wordsByPattern = new Map<string, string>();

/** A text with a form; `words` say it to people. */
export const patterned = (
  pattern: string,
  words: string,
  options: Readonly<{ description: string; default?: string }>,
) => {
  wordsByPattern.set(pattern, words);
  return Type.String({ ...options, pattern });
};

/** The message for a text that does not match. */
export function patternMessage(pattern: string | RegExp): string {
  const words = wordsByPattern.get(typeof pattern === 'string' ? pattern : pattern.source);
  if (words === undefined) throw new Error(`no words for the pattern ${String(pattern)}`);
  return `must be ${words}`;
}

export const versions = (description: string, initial: string[] = []) =>
  Type.Array(patterned(String.raw`^\d{4}-\d{2}-\d{2}$`, 'a date such as 2022-11-28', { description: 'a version' }), {
    default: initial,
    description,
  });
export const upTo = (maximum: number, description: string, initial: number, minimum = 0) =>
  Type.Integer({ default: initial, minimum, maximum, description });
/** A secondary limit: these may be off. */
export const orOff = (maximum: number, description: string, initial: number) =>
  Type.Union([Type.Integer({ minimum: 0, maximum }), Type.Literal('off')], { default: initial, description });
export const windowOf = (initial: number, description = 'length of the window') =>
  upTo(MAX_WINDOW_SECONDS, description, initial, 1);
export const windowForm = Type.Enum([...WINDOW_FORMS], {
  default: 'fixed',
  description: 'fixed, or sliding: never more than the limit within the length of the window',
});
export const quota = (description: string, limit: number) =>
  Type.Object(
    { limit: orOff(MAX_LIMIT, 'how much fits into a window', limit) },
    { ...closed, default: {}, description },
  );

export const byId = <T extends ReturnType<typeof Type.Object>>(value: T, description: string) =>
  Type.Record(Type.String(), value, { default: {}, description });
