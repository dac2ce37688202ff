import { TASK_STATES, type DesiredState, type TaskRecord, type TaskState } from './records.ts';

const RANK = new Map(TASK_STATES.map((state, rank) => [state, rank]));

/** Negative when the first state comes before the second. */
export function compareStates(a: TaskState, b: TaskState): number {
  return RANK.get(a)! - RANK.get(b)!;
}

/** Whether the task's node sets this state, instead of the leader. */
export function isOfAgent(state: TaskState): boolean {
  return compareStates(state, 'assigned') > 0 && state !== 'orphaned';
}

/** Whether nothing of the task runs any more, nor will. */
export function hasEnded(state: TaskState): boolean {
  return compareStates(state, 'running') > 0;
}

/** Whether the task is wanted: it runs, or is to run. */
export function isWanted(desired: DesiredState): boolean {
  return desired === 'ready' || desired === 'running';
}

/** The task's slot, or the node of a global service's task: at most one task of a service is wanted there. */
export function placeOf({ slot, node }: Pick<TaskRecord, 'slot' | 'node'>): string {
  return slot === 0 ? node : String(slot);
}
