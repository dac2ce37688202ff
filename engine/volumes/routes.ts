import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';

import type { Engine } from '../engine.ts';
import { anyValue, booleanFilter, labelsMatch, parseFilters, textFilter } from '../http/filters.ts';
import { createVolume } from './create.ts';
import { removeVolume } from './remove.ts';
import { CreateVolumeBody, RemoveVolumeQuery, VolumeList, VolumeName, VolumesQuery, VolumeWire } from './schema.ts';
import type { Volume } from './store.ts';

/** Endpoints 47 to 50. */
export const volumeRoutes =
  (engine: Engine): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.get('/volumes', {
      schema: { querystring: VolumesQuery, response: { 200: VolumeList } },
      handler: ({ query }) => {
        const filters = parseFilters(query.filters, ['name', 'dangling', 'driver', 'label']);
        const dangling = booleanFilter(filters, 'dangling');
        const hasName = textFilter(filters, 'name');
        const volumes = engine.volumes
          .all()
          .filter(
            ({ name, driver, labels }) =>
              hasName(name) &&
              anyValue(filters, 'driver', (part) => driver.includes(part)) &&
              labelsMatch(filters.get('label'), labels) &&
              (dangling === undefined || dangling === (engine.volumeUsage.usersOf(name).length === 0)),
          );
        return { Volumes: volumes.map((volume) => present(engine, volume)), Warnings: null };
      },
    });

    http.post('/volumes/create', {
      schema: { body: CreateVolumeBody, response: { 201: VolumeWire } },
      handler: async ({ body }, reply) => {
        const { Name, Driver, DriverOpts, Labels } = body;
        const volume = createVolume(engine, { name: Name, driver: Driver, options: DriverOpts, labels: Labels });
        return await reply.code(201).send(present(engine, volume));
      },
      // A driver is no object of the API: the specification has no 404 here.
      config: { errors: { notFound: 500 } },
    });

    http.get('/volumes/:name', {
      schema: { params: VolumeName, response: { 200: VolumeWire } },
      handler: ({ params }) => present(engine, engine.volumes.find(params.name)),
    });

    http.delete('/volumes/:name', {
      schema: { params: VolumeName, querystring: RemoveVolumeQuery },
      handler: async ({ params }, reply) => {
        await removeVolume(engine, params.name);
        return await reply.code(204).send();
      },
    });
  };

function present({ volumeDrivers }: Engine, volume: Volume): VolumeWire {
  const { name, createdAt, labels } = volume;
  const driver = volumeDrivers.find(volume.driver);
  return {
    CreatedAt: createdAt.round('second').toString(),
    Driver: driver.name,
    Labels: Object.keys(labels).length === 0 ? null : { ...labels },
    Mountpoint: driver.mountpoint(volume),
    Name: name,
    Options: null,
    Scope: driver.scope,
  };
}
