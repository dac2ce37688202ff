import { EngineError } from '../../lib/errors.ts';
import { refuseTakenPorts } from '../allocator/ports.ts';
import { updateOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { compareStates, placeOf } from '../state/task-states.ts';
import { templateOf } from '../state/template.ts';
import { endedByItself } from './places.ts';
import type { Turn } from './turn.ts';

type Service = Stored<'service'>;
type Task = Stored<'task'>;
type Status = NonNullable<Service['updateStatus']>;

/** Whether a task was made by the service's present update, or by restarts amid it. */
export function isOf({ template, updateStatus }: Service, task: Task): boolean {
  const since = updateStatus?.since ?? updateStatus?.startedAt;
  return since !== undefined && task.template === template && Temporal.Instant.compare(task.createdAt, since) >= 0;
}

/** The first new task of a place that came to run, or ended; else the newest one. Undefined before the place is updated. */
export function firstNewOf(service: Service, tasks: readonly Task[]): Task | undefined {
  const own = tasks.filter((task) => isOf(service, task));
  return own.find(({ status }) => compareStates(status.state, 'running') >= 0) ?? own.at(-1);
}

/** The task whose failure is one too many for an update of `places` tasks; undefined where failures do not matter. */
export function failureOf(service: Service, tasks: Iterable<Task>, places: number): Task | undefined {
  const { failureAction, monitorNs, maxFailureRatio } = updateOf(service);
  if (failureAction === 'continue') return undefined;
  const failed = [...tasks].filter((task) => isOf(service, task) && endedEarly(task, monitorNs));
  const ratio = new Set(failed.map(placeOf)).size / places;
  return failed.length > 0 && ratio > maxFailureRatio ? failed.at(-1) : undefined;
}

/**
 * Reacts when too many tasks of an update have failed: it stops, or the specification before counts again. A rollback
 * that fails stops, as does an update before which there was nothing.
 */
export function stopOrRollBack(draft: Draft, service: Service, failed: Task, turn: Turn): void {
  const { previousSpec, ...rest } = service;
  const status = service.updateStatus!;
  const reason = `due to failure or early termination of task ${failed.id}`;
  const isRollback = status.state === 'rollback_started';
  if (updateOf(service).failureAction !== 'rollback' || isRollback || previousSpec === undefined) {
    return stop(draft, service, `${isRollback ? 'rollback' : 'update'} paused ${reason}`);
  }
  try {
    refuseTakenPorts(draft, previousSpec, service.id);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return stop(draft, service, `update paused ${reason}; it cannot be rolled back: ${error.message}`);
  }
  const template = templateOf(service.id, previousSpec);
  const updateStatus: Status = {
    ...status,
    state: 'rollback_started',
    since: turn.now.toString(),
    message: `update rolled back ${reason}`,
  };
  draft.put('template', template);
  draft.put('service', { ...rest, spec: previousSpec, template: template.hash, updateStatus });
}

function stop(draft: Draft, service: Service, message: string): void {
  const status = service.updateStatus!;
  const state = status.state === 'rollback_started' ? 'rollback_paused' : 'paused';
  draft.put('service', { ...service, updateStatus: { ...status, state, message } });
}

function endedEarly(task: Task, monitorNs: number): boolean {
  if (!endedByItself(task)) return false;
  const { startedAt, timestamp } = task.status;
  if (startedAt === undefined) return true;
  const monitored = Temporal.Instant.from(startedAt).add({ milliseconds: Math.ceil(monitorNs / 1e6) });
  return Temporal.Instant.compare(timestamp, monitored) < 0;
}
