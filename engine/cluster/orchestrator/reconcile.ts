import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { globalPlaces, replicatedPlaces } from './desired-places.ts';
import { reconcileJob } from './jobs.ts';
import { Places } from './places.ts';
import { promote } from './promote.ts';
import { reap } from './reap.ts';
import { fill } from './restart.ts';
import { sweepService, sweepTemplates } from './sweep.ts';
import { Earliest, type Turn } from './turn.ts';
import { update } from './update.ts';

/**
 * Brings the tasks of a service nearer to what its record wants, as far as can be done now. It decides by the
 * records, so a new leader goes on where the last one ended.
 *
 * Returns when to look again though nothing has changed: a delay ends then, or now if the turn is full.
 */
export function reconcile(draft: Draft, id: string, turn: Turn): Temporal.Instant | undefined {
  const service = draft.get('service', id);
  if (service === undefined) {
    for (const task of turn.lookAt(draft.tasksOf(id))) if (!turn.isFull) turn.want(draft, task, 'remove');
    reap(draft, id, 0, turn);
    sweepService(draft, id);
    return turn.isFull ? turn.now : undefined;
  }
  const tasks = turn.lookAt(draft.tasksOf(id));
  if (service.job !== undefined) {
    const at = reconcileJob(draft, service, tasks, turn);
    tidy(draft, id, tasks, turn);
    return turn.isFull ? turn.now : at;
  }
  const places = new Places(tasks);
  const wanted =
    service.spec.mode.kind === 'global' ? globalPlaces(draft, service, places) : replicatedPlaces(service, places);
  for (const [place, surplus] of places) {
    if (!wanted.has(place) && !turn.isFull) release(draft, service, surplus, turn);
  }
  for (const place of wanted) if (!turn.isFull) fill(draft, service, place, places.at(place), turn);
  if (turn.isFull) return turn.now;

  const look = new Earliest(turn.now);
  look.at(update(draft, service, wanted, turn));
  if (isRollback(draft.get('service', id)) && !isRollback(service)) return reconcile(draft, id, turn);
  const after = new Places(draft.tasksOf(id));
  for (const place of wanted) if (!turn.isFull) look.at(promote(draft, service, after.at(place), turn));
  tidy(draft, id, tasks, turn);
  return turn.isFull ? turn.now : look.value;
}

/** Deletes tasks beyond the history, and templates that no task has any more. `tasks`: those before this turn. */
function tidy(draft: Draft, id: string, tasks: readonly Stored<'task'>[], turn: Turn): void {
  reap(draft, id, draft.get('cluster', '')?.spec.taskHistoryRetentionLimit ?? 5, turn);
  sweepTemplates(draft, id, new Set(tasks.map(({ template }) => template)));
}

/** Another specification counts since an update has failed. */
function isRollback(service: Stored<'service'> | undefined): boolean {
  return service?.updateStatus?.state === 'rollback_started';
}

/** A surplus slot goes with its tasks; on nodes that a global service no longer uses, their history is kept. */
function release(draft: Draft, service: Stored<'service'>, tasks: readonly Stored<'task'>[], turn: Turn): void {
  const isGlobal = service.spec.mode.kind === 'global';
  for (const task of tasks) {
    const nodeIsGone = draft.get('node', task.node) === undefined;
    turn.want(draft, task, isGlobal && !nodeIsGone ? 'shutdown' : 'remove');
  }
}
