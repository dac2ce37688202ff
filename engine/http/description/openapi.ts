import { VERSION } from '../../version.ts';
import type { Route } from '../route-table.ts';
import { isBelow, OLDEST, type ApiVersion } from '../versions/api-version.ts';
import { FIELD_VERSIONS, type FieldVersions } from '../versions/field-versions.ts';
import type { Endpoint, EndpointName } from './endpoints.ts';

type DescribedRoute = Route & Readonly<{ endpoint: Endpoint }>;
type Tree = {
  description?: string;
  properties?: Record<string, Tree>;
  required?: string[];
  items?: Tree;
  patternProperties?: Record<string, Tree>;
  anyOf?: Tree[];
};
type Schema = { querystring?: Tree; params?: Tree; body?: Tree; response?: Record<string, Tree> };

/** The schema without the fields that came after the version. */
function schemaAt(schema: Tree, since: FieldVersions['body'] = {}, version: ApiVersion, place = ''): Tree {
  const at = (tree: Tree, path: string): Tree => schemaAt(tree, since, version, path);
  const pathOf = (name: string): string => (place === '' ? name : `${place}.${name}`);
  const isKnown = (name: string): boolean => !isBelow(version, since[pathOf(name)] ?? OLDEST);
  const { properties, required, items, patternProperties, anyOf } = schema;
  return {
    ...schema,
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => isKnown(name))
          .map(([name, tree]) => [name, at(tree, pathOf(name))]),
      ),
    }),
    ...(required !== undefined && { required: required.filter(isKnown) }),
    ...(items !== undefined && { items: at(items, place) }),
    ...(patternProperties !== undefined && {
      patternProperties: Object.fromEntries(
        Object.entries(patternProperties).map(([pattern, tree]) => [pattern, at(tree, place)]),
      ),
    }),
    ...(anyOf !== undefined && { anyOf: anyOf.map((tree) => at(tree, place)) }),
  };
}

/** The API of one version as an OpenAPI document, made from the schemas that validate. */
export function describeRoutes(routes: readonly DescribedRoute[], version: ApiVersion): object {
  const paths = new Map<string, Record<string, object>>();
  for (const { endpoint, url, method, schema } of routes) {
    if (endpoint.since !== undefined && isBelow(version, endpoint.since)) continue;
    const path = url.replaceAll(/:(\w+)/g, '{$1}');
    paths.set(path, {
      ...paths.get(path),
      [method.toLowerCase()]: operationOf(endpoint, partsAt(endpoint, schema, version)),
    });
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Container Engine API', version, 'x-engine-version': VERSION },
    servers: [{ url: `/v${version}` }],
    paths: Object.fromEntries(paths),
  };
}

function partsAt({ name }: Endpoint, schema: Schema, version: ApiVersion): Schema {
  const { query, body, answer } = FIELD_VERSIONS[name as EndpointName] ?? {};
  const { querystring, response } = schema;
  const answers = Object.entries(response ?? {}).map(([status, tree]) => [status, schemaAt(tree, answer, version)]);
  return {
    ...schema,
    ...(querystring !== undefined && { querystring: schemaAt(querystring, query, version) }),
    ...(schema.body !== undefined && { body: schemaAt(schema.body, body, version) }),
    response: Object.fromEntries(answers),
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

function parametersOf(place: 'path' | 'query', part: Tree | undefined): object[] {
  return Object.entries(part?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || (part?.required?.includes(name) ?? false),
    ...(schema.description !== undefined && { description: schema.description }),
    schema,
  }));
}
