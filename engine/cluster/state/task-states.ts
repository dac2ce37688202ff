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
  return desired === 'ready' || isToRun(desired);
}

/** Whether the task is to run now. */
export function isToRun(desired: DesiredState): boolean {
  return desired === 'running' || desired === 'complete';
}

/** The task's slot, or the node of a global service's task: at most one task of a service is wanted there. */
export function placeOf({ slot, node }: Pick<TaskRecord, 'slot' | 'node'>): string {
  return slot === 0 ? node : String(slot);
}

/** The slot as clients and nodes see it: slots of jobs begin at 0, which also stands for a task of a node. */
export function shownSlot({ slot, jobIteration }: Pick<TaskRecord, 'slot' | 'jobIteration'>): number {
  return jobIteration === undefined ? slot : Math.max(slot - 1, 0);
}

/** The slot or node in the names of a task and its container. */
export function shownPlace(task: Pick<TaskRecord, 'slot' | 'jobIteration' | 'node'>): string {
  return placeOf({ slot: shownSlot(task), node: task.node });
}
