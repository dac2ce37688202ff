import { StepFailed } from '../../builder/steps/step-failed.ts';
import type { Instruction } from '../../buildfile/instruction.ts';
import { InstructionError } from '../../buildfile/stages.ts';
import { EngineError, type ErrorKind } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { GrpcError, StatusCode, type ErrorDetail } from '../wire/status.ts';

const CODES: Readonly<Partial<Record<ErrorKind, number>>> = {
  notFound: StatusCode.NOT_FOUND,
  notImplemented: StatusCode.UNIMPLEMENTED,
  unauthorized: StatusCode.UNAUTHENTICATED,
  forbidden: StatusCode.PERMISSION_DENIED,
  unavailable: StatusCode.UNAVAILABLE,
};
/** Lines around an instruction that a client shows. */
const SHOWN_LINES = 6;
const TYPE = 'github.com/moby/buildkit/errdefs.';

/** The place of a failure in a Buildfile. */
export type Place = Readonly<{
  name: string;
  text: string;
  instruction: Pick<Instruction, 'number' | 'end'>;
  vertex?: string | undefined;
}>;

/** A failure as the status of a call. */
export function statusOf(failure: unknown): GrpcError {
  if (failure instanceof GrpcError) return failure;
  const code = failure instanceof EngineError ? (CODES[failure.kind] ?? StatusCode.UNKNOWN) : StatusCode.UNKNOWN;
  return new GrpcError(code, textOf(failure), [], { cause: failure });
}

/** Like `statusOf`, with the lines of the Buildfile, which the client shows. */
export function statusAt(failure: unknown, place: Place | undefined): GrpcError {
  const status = statusOf(failure);
  return place === undefined
    ? status
    : new GrpcError(status.code, status.message, detailsOf(place), { cause: failure });
}

/** A failure as clients of BuildKit know it. Its instruction, if it cannot be read, is named by its line. */
export function textOf(failure: unknown): string {
  if (failure instanceof InstructionError) return `dockerfile parse error on line ${failure.number}: ${failure.reason}`;
  if (!(failure instanceof StepFailed)) return messageOf(failure);
  const { command, exitCode } = failure;
  return `process ${JSON.stringify(command)} did not complete successfully: exit code: ${exitCode}`;
}

function detailsOf({ name, text, instruction, vertex }: Place): ErrorDetail[] {
  const { number, end } = instruction;
  const lines = text.split('\n').slice(0, end + SHOWN_LINES);
  // Lines that are not shown are empty: the details travel in a header.
  const shown = lines.map((line, index) => (index < number - 1 - SHOWN_LINES ? '' : line));
  const ranges = [{ start: { line: number }, end: { line: end } }];
  const info = { filename: name, data: Buffer.from(shown.join('\n')).toString('base64') };
  const vertexes = vertex === undefined ? [] : [{ type: `${TYPE}Vertex+json`, value: { digest: vertex } }];
  return [...vertexes, { type: `${TYPE}Source+json`, value: { info, ranges } }];
}
