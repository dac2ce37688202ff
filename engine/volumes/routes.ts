import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { clientGone } from '../http/streams/client-gone.ts';
import { anyValue, booleanFilter, labelsMatch, parseFilters, textFilter } from '../http/values/filters.ts';
import { IS_PRUNING, parsePruneFilters, PruneQuery } from '../http/values/prune-filters.ts';
import { OneAtATime } from '../lib/concurrency/one-at-a-time.ts';
import { filterInSlices } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { createVolume } from './create.ts';
import { presentVolume, scopeOf, wire } from './present.ts';
import { pruneVolumes } from './prune.ts';
import { removeVolume } from './remove.ts';
import {
  CreateVolumeBody,
  PrunedVolumes,
  RemoveVolumeQuery,
  VolumeList,
  VolumeName,
  VolumesQuery,
  VolumeWire,
} from './schema.ts';
import { noSuchVolume, type Volume } from './store.ts';
import { prunesNamed, volumeListSteps, volumeSteps } from './versions.ts';

/** Endpoints 47 to 50. */
export const volumeRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/volumes', {
      schema: { querystring: VolumesQuery, response: { 200: VolumeList } },
      handler: async ({ query }) => {
        const filters = parseFilters(query.filters, ['name', 'dangling', 'driver', 'label']);
        const dangling = booleanFilter(filters, 'dangling');
        const hasName = textFilter(filters, 'name');
        const volumes = await filterInSlices(
          engine.volumes.all(),
          ({ name, driver, labels }) =>
            hasName(name) &&
            anyValue(filters, 'driver', (part) => driver.includes(part)) &&
            labelsMatch(filters.get('label'), labels) &&
            (dangling === undefined || dangling === (engine.volumeUsage.usersOf(name).length === 0)),
        );
        const warnings: string[] = [];
        const shown = await Promise.all(volumes.map(async (volume) => await presentOrWarn(engine, volume, warnings)));
        const known = shown.filter((volume) => volume !== undefined);
        return { Volumes: known, Warnings: warnings.length === 0 ? null : warnings };
      },
      config: { steps: volumeListSteps },
    });

    http.post('/volumes/create', {
      schema: { body: CreateVolumeBody, response: { 201: VolumeWire } },
      handler: async ({ body }, reply) => {
        const { Name, Driver, DriverOpts, Labels, ClusterVolumeSpec } = body;
        if (ClusterVolumeSpec != null) refuseClusterVolume(engine);
        const volume = await createVolume(engine, { name: Name, driver: Driver, options: DriverOpts, labels: Labels });
        const made = (await presentVolume(engine, volume)) ?? wire(volume, '', scopeOf(engine, volume));
        return reply.code(201).send(made);
      },
      // A driver is not an object of the API, so the specification has no 404 here.
      config: { steps: volumeSteps, errors: { notFound: 500 } },
    });

    http.get('/volumes/:name', {
      schema: { params: VolumeName, response: { 200: VolumeWire } },
      handler: async ({ params }) => {
        const shown = await presentVolume(engine, engine.volumes.find(params.name));
        if (shown === undefined) throw noSuchVolume(params.name);
        return shown;
      },
      config: { steps: volumeSteps },
    });

    http.put('/volumes/:name', {
      schema: { params: VolumeName },
      handler: () => refuseClusterVolume(engine),
    });

    const pruning = new OneAtATime(IS_PRUNING);
    http.post('/volumes/prune', {
      schema: { querystring: PruneQuery, response: { 200: PrunedVolumes } },
      handler: async ({ query, apiVersion }, reply) => {
        const { filters, matches } = parsePruneFilters(query.filters, ['all'], engine.clock.now());
        const takesNamed = prunesNamed(filters, apiVersion);
        const signal = clientGone(reply.raw);
        const { names, bytes } = await pruning.run(
          async () => await pruneVolumes(engine, { matches, takesNamed }, signal),
        );
        return { VolumesDeleted: names, SpaceReclaimed: bytes };
      },
    });

    http.delete('/volumes/:name', {
      schema: { params: VolumeName, querystring: RemoveVolumeQuery },
      handler: async ({ params, query }, reply) => {
        await removeVolume(engine, params.name, { force: query.force ?? false });
        return reply.code(204).send();
      },
    });
  };

/** Throws: volumes of the whole cluster, which CSI drivers mount, are not built. Outside of a cluster the reason is that. */
function refuseClusterVolume({ cluster }: Pick<Engine, 'cluster'>): never {
  cluster.manager();
  throw new EngineError(
    'notImplemented',
    'cluster volumes (ClusterVolumeSpec) are not implemented: name a volume driver',
  );
}

/** A driver that does not answer does not hide the volumes of others from a list. */
async function presentOrWarn(engine: Engine, volume: Volume, warnings: string[]): Promise<VolumeWire | undefined> {
  try {
    const shown = await presentVolume(engine, volume);
    if (shown === undefined) return undefined;
    const { Status: _onlyInspected, ...rest } = shown;
    return rest;
  } catch (error) {
    warnings.push(`${volume.name}: ${messageOf(error)}`);
    return wire(volume, '', 'local');
  }
}
