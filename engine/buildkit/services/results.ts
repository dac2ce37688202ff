import type { Engine } from '../../engine.ts';
import { Nothing } from '../messages/common.ts';
import * as messages from '../messages/results.ts';
import type { Solve } from '../solve.ts';
import { unary, type Call, type Methods } from '../wire/service.ts';
import { readResultFile, readResultFolder, statResultFile } from './result-files.ts';

const SERVICE = '/moby.buildkit.v1.frontend.LLBBridge/';

/** The methods of the bridge about results of the build: their files, and warnings of the client's own frontend. */
export function resultMethods(engine: Engine, solveOf: (call: Call) => Promise<Solve>): Methods {
  return new Map([
    [
      `${SERVICE}ReadFile`,
      unary(messages.ReadFileRequest, messages.ReadFileResponse, async ({ ref, path, range }, call) => {
        const { image } = (await solveOf(call)).built(ref);
        const { offset = 0, length = 0 } = range ?? {};
        return { data: await readResultFile(engine, image, path, { offset, length }) };
      }),
    ],
    [
      `${SERVICE}ReadDir`,
      unary(messages.ReadDirRequest, messages.ReadDirResponse, async ({ ref, path, pattern }, call) => {
        const { image } = (await solveOf(call)).built(ref);
        return { entries: await readResultFolder(engine, image, path, pattern) };
      }),
    ],
    [
      `${SERVICE}StatFile`,
      unary(messages.StatFileRequest, messages.StatFileResponse, async ({ ref, path }, call) => {
        const { image } = (await solveOf(call)).built(ref);
        return { stat: await statResultFile(engine, image, path) };
      }),
    ],
    [
      `${SERVICE}Evaluate`,
      unary(messages.EvaluateRequest, Nothing, async ({ ref }, call) => {
        (await solveOf(call)).built(ref); // a result is complete
        return {};
      }),
    ],
    [
      `${SERVICE}Warn`,
      unary(messages.WarnRequest, Nothing, async ({ vertex, level, short, detail, url }, call) => {
        (await solveOf(call)).queue.push({ warnings: [{ vertex, level, short, detail, url }] }, short.length);
        return {};
      }),
    ],
  ]);
}
