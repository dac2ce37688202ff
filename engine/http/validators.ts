import Schema from 'typebox/schema';

import { EngineError } from '../lib/errors.ts';

type Route = Readonly<{ schema: unknown; httpPart?: string }>;
type Verdict = true | { error: EngineError };

/**
 * Fastify's factory for the checks of a route's parts. A check is compiled when it is first needed: most daemons are
 * never asked for most of their endpoints, and this keeps a second schema compiler out of memory.
 */
export function lazyValidator({ schema, httpPart = 'request' }: Route): (value: unknown) => Verdict {
  let compiled: ReturnType<typeof Schema.Compile> | undefined;
  return (value) => {
    compiled ??= Schema.Compile(schema as object);
    if (compiled.Check(value)) return true;
    const [, [first]] = compiled.Errors(value);
    const field = first?.instancePath.slice(1).replaceAll('/', '.') ?? '';
    const problem = first?.message ?? 'not as expected';
    return {
      error: new EngineError('invalid', `invalid ${httpPart}${field === '' ? '' : ` field ${field}`}: ${problem}`),
    };
  };
}
