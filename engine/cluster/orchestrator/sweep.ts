import type { Draft } from '../state/draft.ts';

/** Deletes the templates and counts of restarts that no service and no task has: what an older leader left. */
export function sweep(draft: Draft): void {
  const used = new Set<string>();
  for (const { id, template } of draft.all('service')) used.add(`${id}/${template}`);
  for (const { service, template } of draft.all('task')) used.add(`${service}/${template}`);
  for (const { service, hash } of [...draft.all('template')]) {
    if (!used.has(`${service}/${hash}`)) draft.delete('template', `${service}/${hash}`);
  }
  for (const { service, place } of [...draft.all('restart')]) {
    if (draft.get('service', service) === undefined) draft.delete('restart', `${service}/${place}`);
  }
}

/** Deletes what a removed service leaves once its last task is gone. */
export function sweepService(draft: Draft, id: string): void {
  if (draft.tasksOf(id).next().done !== true) return;
  for (const { service, hash } of [...draft.all('template')]) {
    if (service === id) draft.delete('template', `${id}/${hash}`);
  }
  for (const { service, place } of [...draft.all('restart')]) {
    if (service === id) draft.delete('restart', `${id}/${place}`);
  }
}

/** Deletes older templates of a service, of those given, that no task of it has any more. */
export function sweepTemplates(draft: Draft, id: string, hashes: Iterable<string>): void {
  const left = new Set(hashes);
  left.delete(draft.get('service', id)?.template ?? '');
  if (left.size === 0) return;
  for (const { template } of draft.tasksOf(id)) left.delete(template);
  for (const hash of left) if (draft.get('template', `${id}/${hash}`)) draft.delete('template', `${id}/${hash}`);
}
