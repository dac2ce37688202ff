import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

import type { Logger } from 'pino';
import type { Static, TSchema } from 'typebox';

import type { RouteSchema, ServedRoute } from './route-table.ts';
import { writtenVersion, type ApiVersion } from './versions/api-version.ts';

type Part<Schema extends RouteSchema, Name extends keyof RouteSchema> = Schema[Name] extends TSchema
  ? Static<Schema[Name]>
  : unknown;

/** A request to the API, with its values as the schema of its route types them. */
export type ApiRequest<Schema extends RouteSchema = RouteSchema> = Readonly<{
  raw: IncomingMessage;
  method: string;
  /** As the client wrote it. */
  originalUrl: string;
  /** For the router: without the version, names with slashes encoded. */
  url: string;
  headers: IncomingHttpHeaders;
  /** The version that the client speaks: the one in the path, else the default of the settings. */
  apiVersion: ApiVersion;
  /** Undefined for a path or a method without one. */
  route: ServedRoute | undefined;
  log: Logger;
  params: Part<Schema, 'params'>;
  query: Part<Schema, 'querystring'>;
  body: Part<Schema, 'body'>;
}>;

/** Whether the client named a version in the path. */
export function namesVersion({ originalUrl }: ApiRequest): boolean {
  return writtenVersion(originalUrl) !== undefined;
}
