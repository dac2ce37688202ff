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
export const versions = (description: string, initial: string[] = []) =>
  Type.Array(Type.String({ pattern: String.raw`^\d{4}-\d{2}-\d{2}$` }), { default: initial, description });
export const upTo = (maximum: number, description: string, initial: number, minimum = 0) =>
  Type.Integer({ default: initial, minimum, maximum, description });
/** A secondary limit: these may be off. */
export const orOff = (maximum: number, description: string, initial: number) =>
  Type.Union([Type.Integer({ minimum: 0, maximum }), Type.Literal('off')], { default: initial, description });
export const windowOf = (initial: number) => upTo(MAX_WINDOW_SECONDS, 'length of the window', initial, 1);
export const windowForm = Type.Enum([...WINDOW_FORMS], {
  default: 'fixed',
  description: 'fixed, or sliding: never more than the limit within the length of the window',
});
export const quota = (description: string, limit: number, windowSeconds: number) =>
  Type.Object(
    {
      limit: orOff(MAX_LIMIT, 'how much fits into a window', limit),
      windowSeconds: windowOf(windowSeconds),
      window: windowForm,
    },
    { ...closed, default: {}, description },
  );

export const byId = <T extends ReturnType<typeof Type.Object>>(value: T, description: string) =>
  Type.Record(Type.String(), value, { default: {}, description });
