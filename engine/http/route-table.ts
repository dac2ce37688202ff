import type { Static, TSchema } from 'typebox';

import { EngineError } from '../lib/errors.ts';
import { endpointOf, routerPath, type Endpoint } from './description/endpoints.ts';
import { describeRoutes } from './description/openapi.ts';
import type { ErrorStatuses } from './errors.ts';
import type { Reply } from './reply.ts';
import type { ApiRequest } from './request.ts';
import type { Steps } from './versions/steps.ts';

/** The parts of a request that are validated, and the answers by status, which `/openapi.json` shows. */
export type RouteSchema = Readonly<{
  params?: TSchema;
  querystring?: TSchema;
  body?: TSchema;
  response?: Readonly<Record<number, TSchema>>;
}>;

type RouteConfig = Readonly<{
  /** The steps between this route and clients of older versions. */
  steps?: Steps;
  /** Statuses of this route that differ from the table, such as `{ conflict: { below: '1.25', status: 500 } }`. */
  errors?: ErrorStatuses;
  /** A missing body is refused; on other routes it counts as a body without fields. */
  needsBody?: true;
}>;

type Answer<Schema extends RouteSchema> =
  Schema extends Readonly<{ response: infer Responses extends Readonly<Record<number, TSchema>> }>
    ? Static<Responses[keyof Responses & number]>
    : unknown;

/** Its result, or the payload of the reply, is the answer, unless it took the response over. */
type Handler<Schema extends RouteSchema> = (
  request: ApiRequest<Schema>,
  reply: Reply<Answer<Schema>>,
) =>
  | Answer<Schema>
  | Reply<Answer<Schema>>
  | undefined
  | void
  | Promise<Answer<Schema> | Reply<Answer<Schema>> | undefined | void>;

type RouteOptions<Schema extends RouteSchema> = Readonly<{
  schema?: Schema;
  config?: RouteConfig;
  handler: Handler<Schema>;
}>;

type Method = Endpoint['method'];

export type Route = Readonly<{
  method: Method;
  /** As the router writes it: `/exec/:id/start`. */
  url: string;
  schema: RouteSchema;
  config: RouteConfig;
  handler: (request: ApiRequest, reply: Reply) => unknown;
}>;

/** A route with its row of the table; the description of the API has none. */
export type ServedRoute = Route & Readonly<{ endpoint?: Endpoint }>;

/** Adds the routes of one domain. */
export type AddRoutes = (http: RouteTable) => void;

type AddRoute = <const Schema extends RouteSchema>(url: string, options: RouteOptions<Schema>) => void;

/** Collects the routes of all domains. */
export class RouteTable {
  readonly routes: Route[] = [];
  readonly get = this.#adds('GET');
  readonly head = this.#adds('HEAD');
  readonly post = this.#adds('POST');
  readonly put = this.#adds('PUT');
  readonly delete = this.#adds('DELETE');

  #adds(method: Method): AddRoute {
    return (url, { schema, config = {}, handler }) => {
      this.routes.push({ method, url, schema: schema ?? {}, config, handler: handler as Route['handler'] });
    };
  }
}

/** The routes of the domains, each with its row of the table; an endpoint without a route says that it is not built yet. */
export function completeRoutes(domains: readonly AddRoutes[], endpoints: readonly Endpoint[]): ServedRoute[] {
  const table = new RouteTable();
  for (const add of domains) add(table);
  const built = table.routes.map((route) => {
    const endpoint = endpointOf(endpoints, route);
    if (endpoint === undefined) throw new Error(`${route.method} ${route.url} is not in the table of endpoints`);
    return { ...route, endpoint };
  });
  const missing = endpoints.filter((endpoint) => !built.some((route) => route.endpoint === endpoint)).map(missingRoute);
  const description: ServedRoute = {
    method: 'GET',
    url: '/openapi.json',
    schema: {},
    config: {},
    handler: ({ apiVersion }) => describeRoutes(built, apiVersion),
  };
  return [...built, ...missing, description];
}

function missingRoute(endpoint: Endpoint): ServedRoute {
  const handler = (): never => {
    throw new EngineError('notImplemented', `${endpoint.title} is not implemented yet`);
  };
  return { method: endpoint.method, url: routerPath(endpoint), schema: {}, config: {}, endpoint, handler };
}
