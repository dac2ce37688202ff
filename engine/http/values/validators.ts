import Schema from 'typebox/schema';

import { EngineError } from '../../lib/errors.ts';

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
    const { field, problem } = tellingError(compiled.Errors(value)[1]);
    return {
      error: new EngineError('invalid', `invalid ${httpPart}${field === '' ? '' : ` field ${field}`}: ${problem}`),
    };
  };
}

type Mistake = Readonly<{ instancePath: string; keyword: string; message: string }>;

/** The deepest error is the one that the client has to fix; if several types are allowed, all are named. */
function tellingError(mistakes: readonly Mistake[]): { field: string; problem: string } {
  const depth = ({ instancePath }: Mistake): number => instancePath.split('/').length;
  const [first] = mistakes.toSorted((a, b) => depth(b) - depth(a));
  if (first === undefined) return { field: '', problem: 'invalid value' };
  const here = mistakes.filter(
    ({ instancePath, keyword }) => instancePath === first.instancePath && keyword === 'type',
  );
  const types = new Set(here.map(({ message }) => message.replace('must be ', '')));
  types.delete('null'); // as not given: of no help
  return {
    field: first.instancePath.slice(1).replaceAll('/', '.'),
    problem: types.size === 0 ? first.message : `must be ${[...types].join(' or ')}`,
  };
}
