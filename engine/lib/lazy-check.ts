import type { Static, TSchema } from 'typebox';
import Schema from 'typebox/schema';

type Compiled<S extends TSchema> = ReturnType<typeof Schema.Compile<S>>;

/**
 * The check of a schema, compiled at its first use, so that a start does not wait for what it does not need: 20 ms for
 * images.
 */
export function lazyCheck<S extends TSchema>(
  schema: S,
): { Check: (value: unknown) => value is Static<S>; Errors: Compiled<S>['Errors'] } {
  let compiled: Compiled<S> | undefined;
  return {
    Check: (value): value is Static<S> => (compiled ??= Schema.Compile(schema)).Check(value),
    Errors: (value) => (compiled ??= Schema.Compile(schema)).Errors(value),
  };
}
