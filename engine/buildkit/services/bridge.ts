import type { Engine } from '../../engine.ts';
import { platformText } from '../../images/configuration/platform.ts';
import type { Image } from '../../images/store.ts';
import { answerOrBuild, type Built } from '../frontend/build.ts';
import { credentialsOf } from '../frontend/credentials.ts';
import { statusOf } from '../frontend/errors.ts';
import { resolveImage } from '../frontend/resolve-image.ts';
import { definitionOf } from '../frontend/result-definition.ts';
import * as bridge from '../messages/bridge.ts';
import { Nothing } from '../messages/common.ts';
import * as results from '../messages/results.ts';
import type { Sessions } from '../session/sessions.ts';
import type { Solve } from '../solve.ts';
import type { Solves } from '../solves.ts';
import type { Sent } from '../wire/message.ts';
import { unary, type Call, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { resultMethods } from './results.ts';
import { workerOf } from './worker.ts';

const SERVICE = '/moby.buildkit.v1.frontend.LLBBridge/';
const FRONTEND = 'dockerfile.v0';
const BUILD_HEADER = 'buildkit-controlapi-buildid';
const CAPABILITIES = [
  'solve.base',
  'resolveimage',
  'resolveimage.resolvemode',
  'readfile',
  'readdir',
  'statfile',
  'return',
  'returnmap',
  'proto.refarray',
  'gateway.solve.metadata',
  'gateway.evaluate.solve',
  'gateway.evaluate',
  'gateway.warnings',
  'reference.output',
  'frontend.inputs',
];

/** Clients send several outputs only to a builder that names this one. */
const GRAPH_CAPABILITIES = ['exporter.multiple'];

/** The service `moby.buildkit.v1.frontend.LLBBridge`: a client that asks our frontend, within its own build. */
export function bridgeMethods(engine: Engine, sessions: Sessions, solves: Solves): Methods {
  const solveOf = async ({ headers, signal }: Call): Promise<Solve> =>
    await solves.find(String(headers[BUILD_HEADER] ?? ''), signal);
  return new Map([
    ...resultMethods(engine, solveOf),
    [
      `${SERVICE}ResolveImageConfig`,
      unary(results.ResolveImageRequest, results.ResolveImageResponse, async ({ name, platform, mode }, call) => {
        const solve = await solveOf(call);
        const signal = AbortSignal.any([call.signal, solve.over]);
        const session = await sessions.find(solve.sessionId, signal);
        const wanted = { name, platform, pulls: mode === 'pull' };
        const { config, ...found } = await resolveImage(engine, wanted, credentialsOf(session, signal), signal);
        return { ...found, config: Buffer.from(config) };
      }),
    ],
    [
      `${SERVICE}Ping`,
      unary(Nothing, bridge.PingResponse, () => ({
        frontendCapabilities: CAPABILITIES.map((id) => ({ id, isEnabled: true })),
        graphCapabilities: GRAPH_CAPABILITIES.map((id) => ({ id, isEnabled: true })),
        workers: [workerOf(engine)],
      })),
    ],
    [
      `${SERVICE}Solve`,
      unary(bridge.SolveRequest, bridge.SolveResponse, async (request, call) => {
        const solve = await solveOf(call);
        refuseForeign(request);
        const signal = AbortSignal.any([call.signal, solve.over]);
        try {
          const session = await sessions.find(solve.sessionId, signal);
          const { options: attributes, inputs } = request;
          solve.attributes = attributes;
          const { queue, entitlements, caches } = solve;
          const asked = { attributes, session, queue, entitlements, caches, inputs, signal };
          const { answer, built } = await answerOrBuild(engine, asked);
          return { result: built === undefined ? { metadata: answer } : resultOf(engine, solve, built, attributes) };
        } catch (error) {
          const failure = statusOf(error);
          solve.fail(failure);
          throw failure;
        }
      }),
    ],
    [
      `${SERVICE}Return`,
      unary(bridge.ReturnRequest, Nothing, async ({ result, error }, call) => {
        const failure = error && new GrpcError(error.code, error.message);
        (await solveOf(call)).return(result, failure);
        return {};
      }),
    ],
  ]);
}

/** One result, or one for each platform. */
function resultOf(
  { images }: Pick<Engine, 'images'>,
  solve: Solve,
  built: readonly Built[],
  attributes: ReadonlyMap<string, string>,
): Sent<typeof bridge.Result> {
  const configOf = (image: Image): Buffer => Buffer.from(images.jsonOf(image.id));
  if (built.length === 1 && attributes.get('multi-platform') !== 'true') {
    const [only] = built as readonly [Built];
    return { ref: refOf(solve, only), metadata: new Map([['containerimage.config', configOf(only.image)]]) };
  }
  const named = built.map((each) => ({ ...each, id: platformText(each.platform) }));
  const Platforms = named.map(({ id, platform: { os, architecture, variant } }) => ({
    ID: id,
    Platform: { os, architecture, ...(variant !== '' && { variant }) },
  }));
  return {
    refs: { refs: new Map(named.map((each) => [each.id, refOf(solve, each)])) },
    metadata: new Map([
      ['refs.platforms', Buffer.from(JSON.stringify({ Platforms }))],
      ...named.map(({ id, image }) => [`containerimage.config/${id}`, configOf(image)] as const),
    ]),
  };
}

/** With the image, which the client may give to another build. */
function refOf(solve: Solve, built: Built): { id: string; definition: ReturnType<typeof definitionOf> } {
  return { id: solve.add(built), definition: definitionOf(built.image.id) };
}

function refuseForeign({ definition, frontend }: { definition: Uint8Array; frontend: string }): void {
  if (definition.length > 0 || frontend !== FRONTEND) {
    throw new GrpcError(StatusCode.UNIMPLEMENTED, `only the frontend ${FRONTEND} is part of this builder`);
  }
}
