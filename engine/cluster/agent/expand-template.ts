import { TemplateError } from '@gantry/template/error.ts';
import { compileTemplate } from '@gantry/template/run.ts';

import { EngineError } from '../../lib/errors.ts';
import type { SecretKind } from '../secrets/kinds.ts';
import type { FileMessage } from '../wire/task-messages.ts';
import type { AgentTask } from './store.ts';
import { templateContext } from './task-container.ts';

export type Expansion = NonNullable<FileMessage['templating']>;

type Payload = Readonly<{
  task: AgentTask;
  kind: SecretKind;
  id: string;
  data: Buffer;
  expansion: Expansion;
  /** The data of the task's other secrets and configs, by their targets. */
  dataOf: (kind: SecretKind, target: string) => Buffer | undefined;
}>;

/** Expands the data of a secret or config as Go's template. Throws `invalid`. */
export function expandTemplate({ task, kind, id, data, expansion, dataOf }: Payload): Buffer {
  const failed = (reason: string, cause?: unknown): EngineError =>
    new EngineError(
      'invalid',
      `unable to get ${kind} from ${kind} store: failed to expand templated ${kind} ${id}: ${reason}`,
      {
        cause,
      },
    );
  if (expansion.name !== 'golang') throw failed('unrecognized template type');
  const other = (wanted: SecretKind) => (target: unknown) => {
    const found = dataOf(wanted, String(target));
    if (found === undefined) throw failed(`${wanted} target ${String(target)} not found`);
    return found.toString();
  };
  const functions = new Map([
    ['env', (variable: unknown) => environmentOf(task).get(String(variable)) ?? ''],
    ['secret', other('secret')],
    ['config', other('config')],
  ]);
  try {
    return Buffer.from(
      compileTemplate(data.toString(), undefined, functions)(templateContext(task, expansion.serviceLabels)),
    );
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw failed(error.message, error);
  }
}

function environmentOf({ made }: AgentTask): ReadonlyMap<string, string> {
  return new Map(
    (made?.container.env ?? []).map((variable) => {
      const equals = variable.indexOf('=');
      return equals < 0 ? [variable, ''] : [variable.slice(0, equals), variable.slice(equals + 1)];
    }),
  );
}
