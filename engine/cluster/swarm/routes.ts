import type { AddRoutes } from '../../http/route-table.ts';
import { parseStrictBoolean } from '../../http/values/strict-boolean.ts';
import type { Cluster } from '../cluster.ts';
import { clusterOf } from '../state/view.ts';
import { readAddressPools } from './address-pools.ts';
import { presentWithTokens } from './present.ts';
import { InitBody, JoinBody, LeaveQuery, SpecBody, UnlockBody, UpdateQuery } from './schema.ts';
import { readSigning, readSpec } from './spec.ts';
import { readVersion } from './version.ts';

/** Endpoints 67 to 71, 98 and 99. */
export const swarmRoutes =
  ({ cluster }: { cluster: Cluster }): AddRoutes =>
  (http) => {
    http.get('/swarm', {
      handler: async () => {
        const manager = cluster.manager();
        await manager.fresh();
        return presentWithTokens(clusterOf(manager.replica));
      },
    });

    http.post('/swarm/init', {
      schema: { body: InitBody },
      config: { needsBody: true },
      handler: async ({ body }, reply) => {
        const { ListenAddr: listen = '', AdvertiseAddr: advertise = '', ForceNewCluster: force = false, Spec } = body;
        const pools = readAddressPools(body.DefaultAddrPool ?? [], body.SubnetSize);
        const [dataPath, dataPathPort] = [body.DataPathAddr ?? '', body.DataPathPort ?? 0];
        const spec = readSpec(Spec ?? {});
        const signing = readSigning(Spec ?? {});
        const id = await cluster.init({ listen, advertise, dataPath, dataPathPort, force, spec, signing, pools });
        return reply.type('application/json').send(JSON.stringify(id));
      },
    });

    http.post('/swarm/join', {
      schema: { body: JoinBody },
      config: { needsBody: true },
      handler: async ({ body }, reply) => {
        const { ListenAddr: listen = '', AdvertiseAddr: advertise = '', RemoteAddrs, JoinToken: token = '' } = body;
        const dataPath = body.DataPathAddr ?? '';
        await cluster.join({ listen, advertise, dataPath, remotes: RemoteAddrs ?? [], token });
        return reply.code(200).send();
      },
    });

    http.post('/swarm/leave', {
      schema: { querystring: LeaveQuery },
      handler: async ({ query }, reply) => {
        await cluster.leave(query.force ?? false);
        return reply.code(200).send();
      },
    });

    http.post('/swarm/update', {
      schema: { querystring: UpdateQuery, body: SpecBody },
      handler: async ({ query, body }, reply) => {
        const version = readVersion('swarm', query.version);
        const rotateWorker = parseStrictBoolean('rotateWorkerToken', query.rotateWorkerToken);
        const rotateManager = parseStrictBoolean('rotateManagerToken', query.rotateManagerToken);
        const rotateUnlockKey = parseStrictBoolean('rotateManagerUnlockKey', query.rotateManagerUnlockKey);
        const rotated = { rotateWorker, rotateManager, rotateUnlockKey, signing: readSigning(body) };
        await cluster.manager().write('updateCluster', { version, spec: readSpec(body), ...rotated });
        return reply.code(200).send();
      },
    });

    http.get('/swarm/unlockkey', {
      handler: async () => {
        const manager = cluster.manager();
        await manager.fresh();
        return { UnlockKey: clusterOf(manager.replica).unlockKey ?? '' };
      },
    });

    http.post('/swarm/unlock', {
      schema: { body: UnlockBody },
      config: { needsBody: true, errors: { unauthorized: 401 } },
      handler: async ({ body }, reply) => {
        await cluster.unlock(body.UnlockKey ?? '');
        return reply.code(200).send();
      },
    });
  };
