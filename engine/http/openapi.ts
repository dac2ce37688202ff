import { VERSION } from '../version.ts';
import type { Endpoint } from './endpoints.ts';
import type { Route } from './route-table.ts';
import { isBelow, type ApiVersion } from './versions/api-version.ts';

type DescribedRoute = Route & Readonly<{ endpoint: Endpoint }>;
type Schema = { querystring?: Part; params?: Part; body?: object; response?: Record<string, object> };
type Part = { properties?: Record<string, object & { description?: string }>; required?: string[] };

/** The API of one version as an OpenAPI document, made from the schemas that validate. */
export function describeRoutes(routes: readonly DescribedRoute[], version: ApiVersion): object {
  const paths = new Map<string, Record<string, object>>();
  for (const { endpoint, url, method, schema } of routes) {
    if (endpoint.since !== undefined && isBelow(version, endpoint.since)) continue;
    const path = url.replaceAll(/:(\w+)/g, '{$1}');
    paths.set(path, { ...paths.get(path), [method.toLowerCase()]: operationOf(endpoint, schema) });
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Container Engine API', version, 'x-engine-version': VERSION },
    servers: [{ url: `/v${version}` }],
    paths: Object.fromEntries(paths),
  };
}

function operationOf(endpoint: Endpoint, { querystring, params, body, response }: Schema): object {
  return {
    summary: endpoint.title,
    parameters: [...parametersOf('path', params), ...parametersOf('query', querystring)],
    ...(body !== undefined && { requestBody: { content: { 'application/json': { schema: body } } } }),
    responses: {
      ...(endpoint.takesOver !== undefined && { 101: { description: 'the connection is a stream from here on' } }),
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
