import { EngineError } from '../../lib/errors.ts';

/** A command that has ended with another code than 0, which the client gets as well. */
export class StepFailed extends EngineError {
  readonly command: string;
  readonly exitCode: number;

  constructor(command: string, exitCode: number) {
    super('failed', `The command '${command}' returned a non-zero code: ${exitCode}`);
    this.command = command;
    this.exitCode = exitCode;
  }
}
