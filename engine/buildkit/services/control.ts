import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import { cachesOf } from '../caches/cache-options.ts';
import { exportCaches } from '../caches/export.ts';
import { checkExporters, exportResult, type Exporter } from '../export/export.ts';
import { buildForSession, type Built } from '../frontend/build.ts';
import { credentialsOf } from '../frontend/credentials.ts';
import type { History } from '../history/history.ts';
import { Nothing } from '../messages/common.ts';
import * as control from '../messages/control.ts';
import type { Session } from '../session/session.ts';
import type { Sessions } from '../session/sessions.ts';
import { Solve } from '../solve.ts';
import type { Solves } from '../solves.ts';
import type { Received } from '../wire/message.ts';
import { streaming, unary, type Call, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { BUILDER_VERSION, workerOf } from './worker.ts';

const SERVICE = '/moby.buildkit.v1.Control/';
const FRONTEND = 'dockerfile.v0';
const ALLOWED_ENTITLEMENTS: ReadonlySet<string> = new Set(['', 'network.host']);

type Request = Received<typeof control.SolveRequest>;
type Builds = Readonly<{ sessions: Sessions; solves: Solves; history: History }>;

/** The service `moby.buildkit.v1.Control`: builds, their progress, and the builder itself. */
export function controlMethods(engine: Engine, { sessions, solves, history }: Builds): Methods {
  return new Map([
    [
      `${SERVICE}ListWorkers`,
      unary(control.ListWorkersRequest, control.ListWorkersResponse, () => ({ workers: [workerOf(engine)] })),
    ],
    [`${SERVICE}Info`, unary(Nothing, control.InfoResponse, () => ({ version: BUILDER_VERSION }))],
    [
      `${SERVICE}Solve`,
      unary(control.SolveRequest, control.SolveResponse, async (request, call) => ({
        exporter: await solve(engine, { sessions, solves, history }, request, call),
      })),
    ],
    [
      `${SERVICE}Status`,
      streaming(control.StatusRequest, control.StatusResponse, async function* status({ ref }, { signal }) {
        const log = await history.log(ref);
        if (log === undefined) yield* (await solves.find(ref, signal)).queue.read(signal);
        else for (const each of log) yield each;
      }),
    ],
  ]);
}

async function solve(
  engine: Engine,
  { sessions, solves, history }: Builds,
  request: Request,
  { signal }: Call,
): Promise<ReadonlyMap<string, string>> {
  const build = new Solve(request.session, signal, request.entitlements);
  using _listed = solves.add(request.ref, build); // further calls of the client wait for it, also for one that is refused
  const exporters = exportersOf(request);
  refuseForeign(request);
  build.attributes = request.frontendOptions;
  build.caches = cachesOf(request.cache);
  const work = async (): Promise<ReadonlyMap<string, string>> =>
    await buildAndExport(engine, sessions, request, { exporters, build });
  return request.isInternal ? await work() : await history.record({ ref: request.ref, exporters }, build, work);
}

async function buildAndExport(
  engine: Engine,
  sessions: Sessions,
  request: Request,
  { exporters, build }: Readonly<{ exporters: readonly Exporter[]; build: Solve }>,
): Promise<ReadonlyMap<string, string>> {
  const built = await resultsOf(engine, sessions, request, build);
  if (built.length === 0) return new Map();
  const sessionOf = async (): Promise<Session> => await sessions.find(build.sessionId, build.over);
  const signal = build.over;
  const credentials: CredentialsByHost = {
    get: async (host) => await credentialsOf(await sessionOf(), signal).get(host),
  };
  const how = { build, sessionOf, credentials };
  const exported = await exportResult(engine, built, exporters, how);
  return new Map([...exported, ...(await exportCaches(engine, built, how))]);
}

/** That of a client's own frontend, which calls the bridge, or of ours. */
async function resultsOf(
  engine: Engine,
  sessions: Sessions,
  { frontend, frontendOptions: attributes, inputs }: Request,
  build: Solve,
): Promise<readonly Built[]> {
  if (frontend === '') return await build.results();
  const signal = build.over;
  const session = await sessions.find(build.sessionId, signal);
  const { queue, entitlements, caches } = build;
  return await buildForSession(engine, { attributes, session, queue, entitlements, caches, inputs, signal });
}

function exportersOf({ exporters, exporter, exporterAttributes }: Request): Exporter[] {
  const all =
    exporters.length > 0 || exporter === '' ? exporters : [{ type: exporter, attributes: exporterAttributes }];
  checkExporters(all);
  return all;
}

/** Throws for what this builder does not take. */
function refuseForeign({ definition, frontend, entitlements }: Request): void {
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
}
