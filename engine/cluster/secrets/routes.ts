import type { Engine } from '../../engine.ts';
import type { AddRoutes } from '../../http/route-table.ts';
import { parseFilters } from '../../http/values/filters.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Manager } from '../membership/manager.ts';
import type { Stored } from '../state/records.ts';
import { findSecret } from './find.ts';
import { SECRET_KINDS, type SecretKind } from './kinds.ts';
import { listSecrets } from './list.ts';
import { presentSecret } from './present.ts';
import { SecretBody, SecretRef, SecretsQuery, UpdateSecretQuery } from './schema.ts';
import { seal, unseal } from './seal.ts';
import { checkLabels, readSecretSpec } from './spec.ts';
import { refuseChanges } from './update.ts';

type Needs = Pick<Engine, 'cluster'>;

/** Endpoints 86 to 95: the same five for secrets and for configs. */
export const secretRoutes =
  (engine: Needs): AddRoutes =>
  (http) => {
    addRoutes(engine, 'secret', http);
    addRoutes(engine, 'config', http);
  };

function addRoutes({ cluster }: Needs, kind: SecretKind, http: Parameters<AddRoutes>[0]): void {
  const path = `/${kind}s` as const;

  http.get(path, {
    schema: { querystring: SecretsQuery },
    handler: async ({ query }) => {
      const filters = parseFilters(query.filters, SECRET_KINDS[kind].filters);
      const manager = await freshManager(cluster);
      const all = listSecrets(manager.replica, kind, filters);
      return await Promise.all(all.map(async (secret) => await shown(manager, kind, secret)));
    },
  });

  http.post(`${path}/create`, {
    schema: { body: SecretBody },
    config: { needsBody: true },
    handler: async ({ body }, reply) => {
      const manager = cluster.manager();
      const { data, ...spec } = readSecretSpec(kind, body);
      const sealed = seal(await manager.dataKey(), { kind, name: spec.name }, data);
      const ID = await manager.write('createSecret', { kind, ...spec, sealed });
      return reply.code(201).send({ ID });
    },
  });

  http.get(`${path}/:ref`, {
    schema: { params: SecretRef },
    handler: async ({ params }) => {
      const manager = await freshManager(cluster);
      return await shown(manager, kind, findSecret(manager.replica, kind, params.ref));
    },
  });

  http.delete(`${path}/:ref`, {
    schema: { params: SecretRef },
    handler: async ({ params }, reply) => {
      await cluster.manager().write('removeSecret', { kind, ref: params.ref });
      return reply.code(204).send();
    },
  });

  http.post(`${path}/:ref/update`, {
    schema: { params: SecretRef, querystring: UpdateSecretQuery, body: SecretBody },
    config: { needsBody: true },
    handler: async ({ params, query, body }, reply) => {
      const version = readSecretVersion(kind, query.version);
      const manager = await freshManager(cluster);
      const secret = findSecret(manager.replica, kind, params.ref);
      refuseChanges(secret, await dataOf(manager, kind, secret), body);
      checkLabels(kind, [body.Labels, secret.templating]);
      await manager.write('updateSecret', { kind, ref: secret.id, version, labels: body.Labels ?? {} });
      return reply.code(200).send();
    },
  });
}

async function freshManager(cluster: Needs['cluster']): Promise<Manager> {
  const manager = cluster.manager();
  await manager.fresh();
  return manager;
}

async function shown(manager: Manager, kind: SecretKind, secret: Stored<SecretKind>): Promise<object> {
  return presentSecret(secret, SECRET_KINDS[kind].isShown ? await dataOf(manager, kind, secret) : undefined);
}

async function dataOf(manager: Manager, kind: SecretKind, { name, sealed }: Stored<SecretKind>): Promise<Buffer> {
  return unseal(await manager.dataKey(), { kind, name }, sealed);
}

function readSecretVersion(kind: SecretKind, text = ''): number {
  if (!/^\d{1,15}$/.test(text)) throw new EngineError('invalid', `invalid ${kind} version`);
  return Number(text);
}
