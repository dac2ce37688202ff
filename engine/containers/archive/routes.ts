import type { TakeChunk } from '../../copies/copies.ts';
import type { Engine } from '../../engine.ts';
import type { AddRoutes } from '../../http/route-table.ts';
import { ClientGone, clientGone } from '../../http/streams/client-gone.ts';
import { openStream, type ResponseStream } from '../../http/streams/stream.ts';
import { EngineError } from '../../lib/errors.ts';
import { VolumeName } from '../../volumes/schema.ts';
import * as wire from '../schema.ts';
import { containerChanges } from './changes.ts';
import { openExport } from './export.ts';
import { listFiles } from './list-files.ts';
import { pathStatHeaders } from './path-stat.ts';
import { openArchive, statPath } from './read.ts';
import { listVolumeFiles, openVolumeArchive } from './volume-files.ts';
import { putArchive } from './write.ts';

const TAR = 'application/x-tar';
const OCTETS = 'application/octet-stream';

export const containerFileRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/containers/:ref/changes', {
      schema: { params: wire.ContainerRef, response: { 200: wire.Changes } },
      handler: async ({ params }, reply) => {
        const json: unknown = await containerChanges(engine, params.ref);
        return reply.type('application/json').send(json as wire.Changes); // written already
      },
    });

    http.get('/containers/:ref/export', {
      schema: { params: wire.ContainerRef },
      handler: async (request, reply) => {
        await using archive = await openExport(engine, request.params.ref);
        await sendStream(openStream(reply, { contentType: OCTETS }), archive.send);
      },
    });

    http.head('/containers/:ref/archive', {
      schema: { params: wire.ContainerRef, querystring: wire.ArchiveQuery },
      handler: async ({ params, query }, reply) => {
        const stat = await statPath(engine, params.ref, query.path ?? '');
        return reply.headers(pathStatHeaders(stat)).send();
      },
    });

    http.get('/containers/:ref/archive', {
      schema: { params: wire.ContainerRef, querystring: wire.ArchiveQuery },
      handler: async (request, reply) => {
        await using archive = await openArchive(engine, request.params.ref, request.query.path ?? '');
        reply.headers(pathStatHeaders(archive.stat));
        await sendStream(openStream(reply, { contentType: TAR }), archive.send);
      },
    });

    http.get('/containers/:ref/files', {
      schema: { params: wire.ContainerRef, querystring: wire.ArchiveQuery, response: { 200: wire.FileList } },
      handler: async ({ params, query }, reply) =>
        await listFiles(engine, params.ref, query.path ?? '/', clientGone(reply.raw)),
    });

    http.get('/volumes/:name/files', {
      schema: { params: VolumeName, querystring: wire.ArchiveQuery, response: { 200: wire.FileList } },
      handler: async ({ params, query }, reply) =>
        await listVolumeFiles(engine, params.name, query.path ?? '/', clientGone(reply.raw)),
    });

    http.get('/volumes/:name/archive', {
      schema: { params: VolumeName, querystring: wire.ArchiveQuery },
      handler: async (request, reply) => {
        await using archive = await openVolumeArchive(engine, request.params.name, request.query.path ?? '');
        reply.headers(pathStatHeaders(archive.stat));
        await sendStream(openStream(reply, { contentType: TAR }), archive.send);
      },
    });

    http.put('/containers/:ref/archive', {
      schema: { params: wire.ContainerRef, querystring: wire.PutArchiveQuery },
      handler: async (request, reply) => {
        const { path = '', noOverwriteDirNonDir: keepsKinds = false, copyUIDGID: toUser = false } = request.query;
        const signal = clientGone(reply.raw);
        await putArchive(engine, request.params.ref, path, request.raw, { keepsKinds, toUser, signal });
        return reply.code(200).send();
      },
    });
  };

/** A failure in the middle breaks the connection, so that no client takes the archive for complete. */
async function sendStream(
  stream: ResponseStream,
  send: (take: TakeChunk, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { output, signal } = stream;
  try {
    await send(async (chunk) => await stream.pass(chunk), signal);
    output.end();
  } catch (error) {
    output.destroy();
    const isRemoved = error instanceof EngineError && error.kind === 'conflict';
    if (!signal.aborted && !(error instanceof ClientGone) && !isRemoved) throw error;
  }
}
