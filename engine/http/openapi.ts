import { VERSION } from '../version.ts';

export type RouteDescription = { url: string; method: string | string[]; schema: unknown; hidden: boolean };
type Schema = { querystring?: Part; params?: Part; body?: object; response?: Record<string, object> };
type Part = { properties?: Record<string, object & { description?: string }>; required?: string[] };

/** The API as an OpenAPI document, made of the same schemas that validate. */
export function describeRoutes(routes: readonly RouteDescription[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { url, method, schema, hidden } of routes) {
    const known = (schema ?? {}) as Schema;
    if (hidden) continue;
    const path = url.replaceAll(/:(\w+)/g, '{$1}');
    for (const verb of [method].flat()) {
      (paths[path] ??= {})[verb.toLowerCase()] = operationOf(known);
    }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Container Engine API', version: '1.24', 'x-engine-version': VERSION },
    servers: [{ url: '/v1.24' }],
    paths,
  };
}

function operationOf({ querystring, params, body, response }: Schema): object {
  return {
    parameters: [...parametersOf('path', params), ...parametersOf('query', querystring)],
    ...(body !== undefined && { requestBody: { content: { 'application/json': { schema: body } } } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(response ?? {}).map(([status, schema]) => [
          status,
          { description: status, content: { 'application/json': { schema } } },
        ]),
      ),
      default: {
        description: 'a refusal or a failure',
        content: { 'application/json': { schema: { type: 'object', properties: { message: { type: 'string' } } } } },
      },
    },
  };
}

function parametersOf(place: 'path' | 'query', part: Part | undefined): object[] {
  return Object.entries(part?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || (part?.required?.includes(name) ?? false),
    ...(schema.description !== undefined && { description: schema.description }),
    schema,
  }));
}
