import { EngineError } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
import { hasEnded, isWanted } from '../state/task-states.ts';
import type { View } from '../state/view.ts';
import type { FileMessage, WantFileMessage } from '../wire/task-messages.ts';
import { referencesIn } from './references.ts';
import { unseal } from './seal.ts';

type Wanted = Pick<WantFileMessage, 'task' | 'kind' | 'id'>;

/** Whether the tasks of a template get secrets or configs. */
export function needsFiles(view: View, { service, template }: Stored<'task'>): boolean {
  const record = view.get('template', `${service}/${template}`);
  return (
    record !== undefined &&
    (['secret', 'config'] as const).some((kind) => referencesIn(record.template, kind).length > 0)
  );
}

/**
 * The leader's answer to a node that asks for the data of a secret or config: refused unless a task that has the reference is
 * the node's own, and is to run.
 */
export async function answerFile(
  view: View,
  dataKey: () => Promise<Buffer>,
  node: string,
  { task: taskId, kind, id }: Wanted,
): Promise<FileMessage> {
  const answer = { say: 'file', task: taskId, kind, id } as const;
  const task = view.get('task', taskId);
  const isItsOwn = task?.node === node && isWanted(task.desired) && !hasEnded(task.status.state);
  const template = isItsOwn ? view.get('template', `${task.service}/${task.template}`)?.template : undefined;
  const secret = view.get(kind, id);
  if (template === undefined || !referencesIn(template, kind).some((reference) => reference.id === id)) {
    return { ...answer, refusal: `${kind} ${id} not found` };
  }
  if (secret === undefined) return { ...answer, refusal: `${kind} ${id} not found` };
  try {
    const data = unseal(await dataKey(), { kind, name: secret.name }, secret.sealed).toString('base64');
    if (secret.templating === undefined) return { ...answer, data };
    const labels = view.get('service', task!.service)?.spec.labels ?? {};
    return { ...answer, data, templating: { name: secret.templating.name, serviceLabels: labels } };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { ...answer, refusal: error.message };
  }
}
