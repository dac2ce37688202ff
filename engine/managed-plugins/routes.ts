import { Type } from 'typebox';

import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { anyValue, booleanFilter, parseFilters } from '../http/values/filters.ts';
import { isBelow, type ApiVersion } from '../http/versions/api-version.ts';
import { familiarReference } from '../images/names/reference.ts';
import { streamProgress } from '../images/progress/progress-stream.ts';
import { parseRegistryAuth } from '../registry/auth/credentials.ts';
import { createPlugin } from './install/create.ts';
import { pluginReference, remotePrivileges } from './install/download.ts';
import { pullPlugin } from './install/pull.ts';
import { pushPlugin } from './install/push.ts';
import { upgradePlugin } from './install/upgrade.ts';
import { kindsOf } from './plugin-config.ts';
import { presentPlugin } from './present.ts';
import { removePlugin } from './remove.ts';
import { disablePlugin } from './runs/disable.ts';
import { enablePlugin } from './runs/enable.ts';
import {
  CreatePluginQuery,
  EnablePluginQuery,
  ForceQuery,
  GrantedBody,
  PluginRef,
  PluginsQuery,
  PluginWire,
  PrivilegeWire,
  PullPluginQuery,
  RemoteQuery,
  SettingsBody,
} from './schema.ts';
import { setPlugin } from './set.ts';

/** The specification has no 409 here. */
const CONFLICT_IS_500 = { conflict: { below: '1.25', status: 500 } } as const;

/** Endpoints 57 to 62, and those of newer versions. */
export const pluginRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/plugins', {
      schema: { querystring: PluginsQuery, response: { 200: Type.Array(PluginWire) } },
      handler: ({ query, apiVersion }) => {
        const filters = parseFilters(query.filters, ['enabled', 'capability']);
        const enabled = booleanFilter(filters, 'enabled');
        return engine.installedPlugins
          .all()
          .filter(
            (plugin) =>
              (enabled === undefined || plugin.isEnabled === enabled) &&
              (!filters.has('capability') ||
                kindsOf(plugin).some((kind) => anyValue(filters, 'capability', (one) => one === kind))),
          )
          .map((plugin) => presentPlugin(plugin, isOld(apiVersion)));
      },
    });

    http.get('/plugins/privileges', {
      schema: { querystring: RemoteQuery, response: { 200: Type.Array(PrivilegeWire) } },
      handler: async ({ query, headers }, reply) =>
        await remotePrivileges(engine, {
          reference: pluginReference(query.remote ?? ''),
          credentials: parseRegistryAuth(headers['x-registry-auth']),
          signal: clientGone(reply.raw),
        }),
    });

    http.post('/plugins/pull', {
      schema: { querystring: PullPluginQuery, body: GrantedBody },
      handler: async (request, reply) => {
        const { body, headers, query } = request;
        const credentials = parseRegistryAuth(headers['x-registry-auth']);
        const signal = clientGone(reply.raw);
        const { remote, name } = query;
        if (remote === undefined) return await pullPlugin(engine, { remote: name ?? '', credentials, signal });
        const alias = name === '' ? undefined : name;
        // The client enables a plugin by this name.
        reply.headers({ 'docker-plugin-name': familiarReference(pluginReference(alias ?? remote)) });
        return await streamProgress(request, reply, async (report) => {
          await pullPlugin(engine, { remote, name: alias, credentials, signal, granted: body ?? [], report });
        });
      },
      config: {
        errors: {
          ...CONFLICT_IS_500,
          invalid: { below: '1.25', status: 500 },
          notFound: { below: '1.25', status: 500 },
        },
      },
    });

    http.post('/plugins/create', {
      schema: { querystring: CreatePluginQuery },
      handler: async ({ query, raw }, reply) => {
        await createPlugin(engine, query.name ?? '', raw, clientGone(reply.raw));
        return reply.code(204).send();
      },
    });

    http.post('/plugins/:ref/upgrade', {
      schema: { params: PluginRef, querystring: RemoteQuery, body: GrantedBody },
      handler: async (request, reply) => {
        const { body, headers, params, query } = request;
        const credentials = parseRegistryAuth(headers['x-registry-auth']);
        const signal = clientGone(reply.raw);
        await streamProgress(request, reply, async (report) => {
          const remote = query.remote ?? '';
          await upgradePlugin(engine, params.ref, { remote, credentials, signal, granted: body ?? [], report });
        });
      },
    });

    http.post('/plugins/:ref/push', {
      schema: { params: PluginRef },
      handler: async (request, reply) => {
        const credentials = parseRegistryAuth(request.headers['x-registry-auth']);
        const signal = clientGone(reply.raw);
        await streamProgress(request, reply, async (report) => {
          await pushPlugin(engine, request.params.ref, { credentials, signal, report });
        });
      },
    });

    http.post('/plugins/:ref/set', {
      schema: { params: PluginRef, body: SettingsBody },
      handler: async ({ body, params }, reply) => {
        await setPlugin(engine, params.ref, body);
        return reply.code(204).send();
      },
    });

    http.get('/plugins/:ref/json', {
      schema: { params: PluginRef, response: { 200: PluginWire } },
      handler: ({ params, apiVersion }) => presentPlugin(engine.installedPlugins.find(params.ref), isOld(apiVersion)),
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
