import type { Engine } from '../../engine.ts';
import { answerOrBuild } from '../frontend/build.ts';
import { statusOf } from '../frontend/errors.ts';
import * as bridge from '../messages/bridge.ts';
import { Nothing } from '../messages/common.ts';
import type { Sessions } from '../session/sessions.ts';
import type { Solve } from '../solve.ts';
import type { Solves } from '../solves.ts';
import { unary, type Call, type Methods } from '../wire/service.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { workerOf } from './worker.ts';

const SERVICE = '/moby.buildkit.v1.frontend.LLBBridge/';
const FRONTEND = 'dockerfile.v0';
const BUILD_HEADER = 'buildkit-controlapi-buildid';
const CAPABILITIES = [
  'solve.base',
  'return',
  'returnmap',
  'proto.refarray',
  'gateway.solve.metadata',
  'gateway.evaluate.solve',
];

/** The service `moby.buildkit.v1.frontend.LLBBridge`: a client that asks our frontend, within its own build. */
export function bridgeMethods(engine: Engine, sessions: Sessions, solves: Solves): Methods {
  const solveOf = async ({ headers, signal }: Call): Promise<Solve> =>
    await solves.find(String(headers[BUILD_HEADER] ?? ''), signal);
  return new Map([
    [
      `${SERVICE}Ping`,
      unary(Nothing, bridge.PingResponse, () => ({
        frontendCapabilities: CAPABILITIES.map((id) => ({ id, isEnabled: true })),
        graphCapabilities: [],
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
          const { options: attributes } = request;
          const { queue, entitlements } = solve;
          const asked = { attributes, session, queue, entitlements, signal };
          const { answer, image } = await answerOrBuild(engine, asked);
          if (image === undefined) return { result: { metadata: answer } };
          const config = Buffer.from(engine.images.jsonOf(image.id));
          return {
            result: { ref: { id: solve.add(image) }, metadata: new Map([['containerimage.config', config]]) },
          };
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

function refuseForeign({ definition, frontend }: { definition: Uint8Array; frontend: string }): void {
  if (definition.length > 0 || frontend !== FRONTEND) {
    throw new GrpcError(StatusCode.UNIMPLEMENTED, `only the frontend ${FRONTEND} is part of this builder`);
  }
}
