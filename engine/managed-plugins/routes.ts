import { Type } from 'typebox';

import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { isBelow, type ApiVersion } from '../http/versions/api-version.ts';
import { parseRegistryAuth } from '../registry/auth/credentials.ts';
import { presentPlugin } from './present.ts';
import { pullPlugin } from './pull.ts';
import { removePlugin } from './remove.ts';
import { disablePlugin } from './runs/disable.ts';
import { enablePlugin } from './runs/enable.ts';
import { EnablePluginQuery, ForceQuery, PluginRef, PluginWire, PrivilegeWire, PullPluginQuery } from './schema.ts';

/** The specification has no 409 here. */
const CONFLICT_IS_500 = { conflict: { below: '1.25', status: 500 } } as const;

/** Endpoints 57 to 62. */
export const pluginRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/plugins', {
      schema: { response: { 200: Type.Array(PluginWire) } },
      handler: ({ apiVersion }) =>
        engine.installedPlugins.all().map((plugin) => presentPlugin(plugin, isOld(apiVersion))),
    });

    http.post('/plugins/pull', {
      schema: { querystring: PullPluginQuery, response: { 200: Type.Array(PrivilegeWire) } },
      handler: async ({ query, headers }, reply) =>
        await pullPlugin(engine, {
          name: query.name ?? '',
          credentials: parseRegistryAuth(headers['x-registry-auth']),
          signal: clientGone(reply.raw),
        }),
      config: { errors: { ...CONFLICT_IS_500, invalid: 500, notFound: 500 } },
    });

    http.get('/plugins/:ref', {
      schema: { params: PluginRef, response: { 200: PluginWire } },
      handler: ({ params, apiVersion }) => presentPlugin(engine.installedPlugins.find(params.ref), isOld(apiVersion)),
    });

    http.post('/plugins/:ref/enable', {
      schema: { params: PluginRef, querystring: EnablePluginQuery },
      handler: async ({ params, query }, reply) => {
        await enablePlugin(engine, params.ref, query.timeout);
        return reply.type('text/plain').send('');
      },
      config: { errors: CONFLICT_IS_500 },
    });

    http.post('/plugins/:ref/disable', {
      schema: { params: PluginRef, querystring: ForceQuery },
      handler: async ({ params, query }, reply) => {
        await disablePlugin(engine, params.ref, { force: query.force });
        return reply.send();
      },
      config: { errors: CONFLICT_IS_500 },
    });

    http.delete('/plugins/:ref', {
      schema: { params: PluginRef, querystring: ForceQuery },
      handler: async ({ params, query }, reply) => {
        await removePlugin(engine, params.ref, { force: query.force });
        return reply.send();
      },
      config: { errors: CONFLICT_IS_500 },
    });
  };

function isOld(version: ApiVersion): boolean {
  return isBelow(version, '1.25');
}
