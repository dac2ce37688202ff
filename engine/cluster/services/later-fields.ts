import type { TSchema } from 'typebox';

import { EngineError } from '../../lib/errors.ts';

/** Values of fields of later versions that say what is done anyway: clients send them unasked. */
const USUAL: Readonly<Record<string, readonly unknown[]>> = {
  'TaskTemplate.ContainerSpec.Isolation': ['default'],
  'TaskTemplate.Runtime': ['container'],
};

/** Refuses, by its name, a field that the schema does not have: it would be ignored. Empty values ask for nothing. */
export function refuseLaterFields(schema: TSchema, value: unknown, path = ''): void {
  if (typeof value !== 'object' || value === null) return;
  const known = innerOf(schema);
  if (Array.isArray(value)) {
    for (const one of value) refuseLaterFields(known.items ?? {}, one, path);
    return;
  }
  if (known.properties === undefined) return; // a map of the client's own names
  for (const [name, inner] of Object.entries(value)) {
    const field = path === '' ? name : `${path}.${name}`;
    const own = Object.hasOwn(known.properties, name) ? known.properties[name] : undefined;
    if (own !== undefined) refuseLaterFields(own, inner, field);
    else if (!isEmpty(inner) && USUAL[field]?.includes(inner) !== true) {
      throw new EngineError('notImplemented', `${field} is not implemented: version 1.24 of the API does not have it`);
    }
  }
}

type Known = Readonly<{ properties?: Readonly<Record<string, TSchema>>; items?: TSchema; anyOf?: readonly TSchema[] }>;

/** Returns T for a schema `T or null`. */
function innerOf(schema: TSchema): Known {
  const known = schema as Known;
  return known.anyOf === undefined ? known : (known.anyOf[0] as Known);
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isEmpty);
  return value === undefined || value === null || value === '' || value === 0 || value === false;
}
