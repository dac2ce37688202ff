import type { RateLimiter } from '@gantry/limiter/limiter.ts';
import {
  CATEGORIES,
  type Category,
  type Endpoint,
  type EndpointDefinition,
  type LimitName,
} from '@gantry/limiter/types.ts';

import type { Config } from '../config/schema.ts';
import { CATEGORY_ROUTES, CONTENT_ROUTES, GRAPHQL_PATHS, PATH_TEMPLATES } from './defaults.ts';
import type { Target } from './path.ts';
import { parseTemplate, RouteTable, segmentsOf, trimmedPath, withoutFormat } from './table.ts';

/** The kind of a request. */
export type Route =
  | Readonly<{ kind: 'rest' | 'status' | 'graphql'; endpoint: Endpoint }>
  /** The request is not limited. */
  | Readonly<{ kind: 'unlimited' }>
  /** An upstream that reads the path in another way would see another endpoint (`Target.readings`). */
  | Readonly<{ kind: 'ambiguous'; endpoint: Endpoint }>;

type Content = { perMinute?: number; perHour?: number };
/** Meaning of a request by the templates. */
type Meaning = Readonly<{
  category?: Category | undefined;
  points?: number | undefined;
  content?: Content | undefined;
  shadow?: readonly LimitName[] | undefined;
}>;
type Needs = Pick<RateLimiter, 'endpoint'>;

/** Other methods count together: inventing methods gains nothing. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

const unlimited: Route = { kind: 'unlimited' };

/** Paths whose route is remembered, and how long they may be: a few megabytes at most. */
const MAX_PATHS = 10_000;
const MAX_PATH_LENGTH = 200;

/** Points of the specification, which keeps those of single endpoints secret: `secondary.points` sets them. */
const READ_POINTS = 1;
const WRITE_POINTS = 5;

/** Finds the category and the endpoint of a request by its method and path. */
export class Routes {
  readonly graphql: Endpoint;
  /** Endpoint of requests that cannot be read at all. */
  readonly unreadable: Endpoint;
  /** Endpoint of requests with a credential that the forge is being asked about. */
  readonly unknownCredential: Endpoint;
  /** Endpoint of a browser's question before a request of a page; for all paths. */
  readonly preflight: Endpoint;
  readonly #status: Endpoint;
  readonly #limiter: Needs;
  readonly #basePath: string;
  readonly #passesOutside: boolean;
  readonly #names = new RouteTable<string>();
  readonly #categories = new RouteTable<Category>();
  readonly #points = new RouteTable<number>();
  readonly #content = new RouteTable<Content>();
  readonly #shadow = new RouteTable<readonly LimitName[]>();
  readonly #exempt = new RouteTable<true>();
  /** Outside of the base path: they count as content only. */
  readonly #webContent = new RouteTable<Endpoint>();
  /** By method and template, as many as there are templates; made on first use. */
  readonly #endpoints = new Map<string, Route>();
  /** Routes of recent requests by method and path, since clients repeat the same ones. */
  readonly #recent = new Map<string, Map<string, Route>>();
  #recentSize = 0;

  constructor(config: Config, limiter: Needs) {
    const { secondary, categories } = config;
    this.#limiter = limiter;
    this.#basePath = config.basePath.toLowerCase();
    this.#passesOutside = config.outsideBasePath === 'pass';
    this.unreadable = limiter.endpoint({ name: 'unreadable', points: READ_POINTS });
    this.unknownCredential = limiter.endpoint({ name: 'unknown credential', points: READ_POINTS });
    this.preflight = limiter.endpoint({ name: 'preflight', primary: false, points: READ_POINTS });
    this.#status = limiter.endpoint({ name: 'GET /rate_limit', primary: false, points: READ_POINTS });

    for (const path of [...PATH_TEMPLATES, ...config.routes]) this.#name(path);
    for (const name of CATEGORIES) {
      for (const route of categories[name].routes ?? CATEGORY_ROUTES[name] ?? []) {
        this.#categories.add(this.#named(route), name);
      }
    }
    const content = secondary.content ?? CONTENT_ROUTES.map((route) => ({ route }));
    for (const { route, ...limits } of content) this.#content.add(this.#named(route), limits);
    for (const route of config.webContent) {
      const template = parseTemplate(route);
      const name = `web ${template.method} ${template.path.replaceAll(/\{[^}]*\}/g, '{}')}`;
      this.#webContent.add(template, limiter.endpoint({ name, primary: false, points: 0, content: true }));
    }
    for (const route of config.exempt.routes) this.#exempt.add(parseTemplate(route), true);
    for (const { route, limits } of config.shadowRoutes) this.#shadow.add(this.#named(route), limits);
    const shadow = GRAPHQL_PATHS.flatMap((path) => this.#shadow.find('POST', segmentsOf(path)) ?? []);
    this.graphql = limiter.endpoint({ name: 'GraphQL', api: 'graphql', shadow });
    for (const [route, points] of Object.entries(secondary.points)) this.#points.add(this.#named(route), points);
  }

  find(method: string, { path, readings, query }: Target): Route {
    const known = this.#recent.get(method)?.get(path);
    if (known !== undefined && readings === undefined) return known;
    const route = this.#find(method, path);
    if (readings === undefined) {
      // A slice of a longer text would keep the whole text in memory.
      if (query === '' && path.length <= MAX_PATH_LENGTH && METHODS.has(method)) this.#remember(method, path, route);
      return route;
    }
    const others = readings.map((reading) => this.#find(method, reading));
    if (others.every((other) => sameKind(route, other))) return others.at(-1) ?? route;
    return { kind: 'ambiguous', endpoint: this.unreadable };
  }

  #remember(method: string, path: string, route: Route): void {
    if (this.#recentSize >= MAX_PATHS) {
      this.#recent.clear();
      this.#recentSize = 0;
    }
    this.#recentSize += 1;
    const paths = this.#recent.get(method);
    if (paths === undefined) this.#recent.set(method, new Map([[path, route]]));
    else paths.set(path, route);
  }

  #find(method: string, path: string): Route {
    const segments = segmentsOf(path);
    if (this.#isExempt(method, path, segments)) return unlimited;
    if (GRAPHQL_PATHS.includes(withoutFormat(segments.join('/')))) return { kind: 'graphql', endpoint: this.graphql };
    const known = METHODS.has(method) ? method : 'OTHER';
    const inside = this.#insideBasePath(path, segments);
    if (inside === undefined) {
      const action = this.#webContent.find(known, segments);
      if (action !== undefined) return { kind: 'rest', endpoint: action };
      return this.#passesOutside ? unlimited : this.#endpoint(`${known} outside basePath`, known, {});
    }
    if (inside.length === 1 && inside[0] === 'rate_limit' && (method === 'GET' || method === 'HEAD')) {
      return { kind: 'status', endpoint: this.#status };
    }
    const template = this.#names.find(known, inside) ?? `${this.#names.prefixOf(inside)}/**`;
    return this.#endpoint(`${known} ${template}`, known, {
      category: this.#categories.find(known, inside),
      points: this.#points.find(known, inside),
      content: this.#content.find(known, inside),
      shadow: this.#shadow.find(known, inside),
    });
  }

  /** A path that servers read in several ways is not exempt. */
  #isExempt(method: string, path: string, segments: string[]): boolean {
    return !/[;%]/.test(path) && this.#exempt.find(method, segments) === true;
  }

  #insideBasePath(path: string, segments: string[]): string[] | undefined {
    if (this.#basePath === '') return segments;
    const lower = trimmedPath(path.toLowerCase());
    if (!lower.startsWith(this.#basePath)) return undefined;
    const rest = lower.slice(this.#basePath.length);
    return rest === '' || rest.startsWith('/') ? segmentsOf(rest) : undefined;
  }

  #endpoint(name: string, method: string, { category, points, content, shadow }: Meaning): Route {
    // Two templates that overlap can give one name several meanings; each is an endpoint of its own.
    const others = [category, points, content && '+', shadow?.join(' ')];
    const key = others.every((other) => other === undefined) ? name : [name, ...others].join(' ');
    const found = this.#endpoints.get(key);
    if (found !== undefined) return found;
    const definition: EndpointDefinition = {
      name,
      points: points ?? (READS.has(method) ? READ_POINTS : WRITE_POINTS),
      ...(category === undefined ? {} : { category }),
      ...(content === undefined ? {} : { content: { ...content } }),
      ...(shadow === undefined ? {} : { shadow }),
    };
    const route: Route = { kind: 'rest', endpoint: this.#limiter.endpoint(definition) };
    this.#endpoints.set(key, route);
    return route;
  }

  /** A route with a category, points or content is an endpoint as well. */
  #named(route: string): ReturnType<typeof parseTemplate> {
    const template = parseTemplate(route);
    this.#name(template.path);
    return template;
  }

  #name(path: string): void {
    this.#names.add({ method: '*', path }, path.replaceAll(/\{[^}]*\}/g, '{}'));
  }
}

function sameKind(one: Route, other: Route): boolean {
  if (one.kind === 'unlimited' || other.kind === 'unlimited') return one.kind === other.kind;
  return (
    one.kind === other.kind &&
    one.endpoint.category === other.endpoint.category &&
    one.endpoint.content === other.endpoint.content &&
    one.endpoint.shadow === other.endpoint.shadow
  );
}
