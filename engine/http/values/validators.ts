import Schema from 'typebox/schema';

import { EngineError } from '../../lib/errors.ts';
import type { RouteSchema } from '../route-table.ts';

type Parts = Readonly<{ params: unknown; query: unknown; body: unknown }>;
type Check = ReturnType<typeof Schema.Compile>;

/**
 * Checks the parts of a route's requests. A check is compiled when it is first needed, because most daemons are never
 * asked for most of their endpoints.
 */
export class RouteValidator {
  readonly #schema: RouteSchema;
  readonly #checks = new Map<keyof RouteSchema, Check>();

  constructor(schema: RouteSchema) {
    this.#schema = schema;
  }

  /** Throws `invalid` with the client's own words for the field. */
  check({ params, query, body }: Parts): void {
    this.#checkPart('params', params);
    this.#checkPart('body', body);
    this.#checkPart('querystring', query);
  }

  #checkPart(part: 'params' | 'body' | 'querystring', value: unknown): void {
    const schema = this.#schema[part];
    if (schema === undefined) return;
    const check = this.#checks.get(part) ?? Schema.Compile(schema);
    this.#checks.set(part, check);
    if (check.Check(value)) return;
    const { field, problem } = tellingError(check.Errors(value)[1]);
    throw new EngineError('invalid', `invalid ${part}${field === '' ? '' : ` field ${field}`}: ${problem}`);
  }
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
