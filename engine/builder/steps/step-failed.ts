import { EngineError } from '../../lib/errors.ts';

/** A command that has ended with another code than 0, which the client gets as well. */
export class StepFailed extends EngineError {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super('failed', message);
    this.exitCode = exitCode;
  }
}
