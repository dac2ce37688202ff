import type { Engine } from '../../engine.ts';
import type { Image } from '../../images/store.ts';
import { exportImage } from '../export/image.ts';
import { exportLocal } from '../export/local.ts';
import { exportTar } from '../export/tar.ts';
import { buildForSession } from '../frontend/build.ts';
import { Nothing } from '../messages/common.ts';
import * as control from '../messages/control.ts';
import { Vertex } from '../progress/vertex.ts';
import type { Sessions } from '../session/sessions.ts';
import { Solve } from '../solve.ts';
import type { Solves } from '../solves.ts';
import type { Received } from '../wire/message.ts';
import { streaming, unary, type Call, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { BUILDER_VERSION, workerOf } from './worker.ts';

const SERVICE = '/moby.buildkit.v1.Control/';
const FRONTEND = 'dockerfile.v0';
const IMAGE_EXPORTERS: ReadonlySet<string> = new Set(['moby', 'image', 'docker']);
const FILE_EXPORTERS: ReadonlySet<string> = new Set(['local', 'tar']);
const ALLOWED_ENTITLEMENTS: ReadonlySet<string> = new Set(['', 'network.host']);

type Request = Received<typeof control.SolveRequest>;
type Exporter = Readonly<{ type: string; attributes: ReadonlyMap<string, string> }>;

/** The service `moby.buildkit.v1.Control`: builds, their progress, and the builder itself. */
export function controlMethods(engine: Engine, sessions: Sessions, solves: Solves): Methods {
  return new Map([
    [
      `${SERVICE}ListWorkers`,
      unary(control.ListWorkersRequest, control.ListWorkersResponse, () => ({ workers: [workerOf(engine)] })),
    ],
    [`${SERVICE}Info`, unary(Nothing, control.InfoResponse, () => ({ version: BUILDER_VERSION }))],
    [
      `${SERVICE}Solve`,
      unary(control.SolveRequest, control.SolveResponse, async (request, call) => ({
        exporter: await solve(engine, sessions, solves, request, call),
      })),
    ],
    [
      `${SERVICE}Status`,
      streaming(control.StatusRequest, control.StatusResponse, async function* status({ ref }, { signal }) {
        yield* (await solves.find(ref, signal)).queue.read(signal);
      }),
    ],
  ]);
}

async function solve(
  engine: Engine,
  sessions: Sessions,
  solves: Solves,
  request: Request,
  { signal }: Call,
): Promise<ReadonlyMap<string, string>> {
  const exporters = exportersOf(request);
  refuseForeign(request);
  const build = new Solve(request.session, signal, request.entitlements);
  using _listed = solves.add(request.ref, build);
  const image = await resultOf(engine, sessions, request, build);
  if (image === undefined) return new Map();
  const exported = new Map<string, string>();
  for (const [index, exporter] of exporters.entries()) {
    const vertex = new Vertex(build.queue, engine.clock, exportName(exporter));
    const values = await vertex.run(async () => {
      if (IMAGE_EXPORTERS.has(exporter.type)) return await exportImage(engine, image, exporter.attributes, vertex);
      const to = { session: await sessions.find(build.sessionId, build.over), index, signal: build.over };
      await (exporter.type === 'tar' ? exportTar(engine, image, to) : exportLocal(engine, image, to));
      return new Map<string, string>();
    });
    for (const [key, value] of values) exported.set(key, value);
  }
  return exported;
}

/** That of a client's own frontend, which calls the bridge, or of ours. */
async function resultOf(
  engine: Engine,
  sessions: Sessions,
  { frontend, frontendOptions: attributes }: Request,
  build: Solve,
): Promise<Image | undefined> {
  if (frontend === '') return await build.result();
  const signal = build.over;
  const session = await sessions.find(build.sessionId, signal);
  const { queue, entitlements } = build;
  return await buildForSession(engine, { attributes, session, queue, entitlements, signal });
}

function exportName({ type }: Exporter): string {
  return IMAGE_EXPORTERS.has(type)
    ? 'exporting to image'
    : `exporting to client ${type === 'tar' ? 'tarball' : 'directory'}`;
}

function exportersOf({ exporters, exporter, exporterAttributes }: Request): Exporter[] {
  const all =
    exporters.length > 0 || exporter === '' ? exporters : [{ type: exporter, attributes: exporterAttributes }];
  for (const { type, attributes } of all) {
    if (!IMAGE_EXPORTERS.has(type) && !FILE_EXPORTERS.has(type)) throw notYet(`the output ${JSON.stringify(type)}`);
    if (attributes.get('push') === 'true') throw notYet('pushing the result of a build');
  }
  return all;
}

/** Throws for what this builder does not take. */
function refuseForeign({ definition, frontend, entitlements, cache }: Request): void {
  if (definition.length > 0) {
    throw new GrpcError(
      StatusCode.UNIMPLEMENTED,
      `graphs of operations are not taken: build with the frontend ${FRONTEND}`,
    );
  }
  if (frontend !== '' && frontend !== FRONTEND) {
    throw new GrpcError(
      StatusCode.UNIMPLEMENTED,
      `the frontend ${JSON.stringify(frontend)} is not part of this builder: use ${FRONTEND}`,
    );
  }
  const refused = entitlements.find((each) => !ALLOWED_ENTITLEMENTS.has(each));
  if (refused !== undefined) throw new GrpcError(StatusCode.PERMISSION_DENIED, `${refused} is not allowed`);
  const [exported] = cache?.exports ?? [];
  if (exported !== undefined) throw notYet(`the export of the cache to ${JSON.stringify(exported.type)}`);
}

function notYet(subject: string): GrpcError {
  return new GrpcError(StatusCode.UNIMPLEMENTED, `${subject} is not implemented yet`);
}
