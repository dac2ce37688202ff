import { restartOf, updateOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { Stored } from '../state/records.ts';
import { hasEnded } from '../state/task-states.ts';
import { endedByItself, finishedOf, wantedOf } from './places.ts';
import type { Turn } from './turn.ts';

/** Attempts that a record counts; a higher limit is none. */
const MAX_COUNTED = 1000;

type Service = Stored<'service'>;
type Task = Stored<'task'>;

/** Makes sure that a place of a service has its task: its first one, or the next where the last is over. */
export function fill(draft: Draft, service: Service, place: string, tasks: readonly Task[], turn: Turn): void {
  const task = wantedOf(tasks);
  for (const other of tasks) if (other !== task && !isKept(service, other, task)) turn.want(draft, other, 'shutdown');
  if (task === undefined) {
    const finished = finishedOf(service, tasks);
    if (finished === undefined || finished.template !== service.template) turn.add(draft, service, place, open(tasks));
    return;
  }
  if (!hasEnded(task.status.state) && !isHomeless(draft, task)) return;
  turn.want(draft, task, 'shutdown');
  if (!mayStartAgain(draft, service, place, task, turn)) return;
  // Also after a task that has ended: the next one is to wait for the delay.
  turn.add(draft, service, place, [task]);
}

/** An older task that runs until the one that replaces it does: the update starts first. */
function isKept(service: Service, older: Task, task: Task | undefined): boolean {
  if (task === undefined || updateOf(service).order !== 'start-first') return false;
  const hasRun = task.status.state === 'running' || task.status.state === 'complete';
  return !hasRun && older.status.state === 'running' && older.template !== task.template;
}

/** The node of the task is lost, or drained. */
function isHomeless(draft: Draft, task: Task): boolean {
  return task.node !== '' && (isLost(draft, task) || draft.get('node', task.node)?.spec.availability === 'drain');
}

/** The node of the task is down or removed. */
export function isLost(draft: Draft, task: Task): boolean {
  const node = draft.get('node', task.node);
  return node === undefined || node.status.state === 'down';
}

function open(tasks: readonly Task[]): Task[] {
  return tasks.filter(({ status, node }) => !hasEnded(status.state) && node !== '');
}

/** By the service's restart policy; counts what it allows. */
function mayStartAgain(draft: Draft, service: Service, place: string, task: Task, turn: Turn): boolean {
  const { condition, maxAttempts, windowNs } = restartOf(service.spec.template);
  // An update may have come meanwhile: its task is the first of a new template.
  if (task.template !== service.template) return true;
  if (condition === 'none') return false;
  if (condition === 'on-failure' && task.status.state === 'complete') return false;
  if (maxAttempts === 0 || maxAttempts > MAX_COUNTED || !endedByItself(task)) return true;
  const before = draft.get('restart', `${service.id}/${place}`);
  const since = windowNs === 0 ? undefined : turn.now.subtract({ nanoseconds: windowNs });
  const iteration = service.job?.iteration;
  const isSame = before?.template === service.template && before.iteration === iteration;
  const attempts = (isSame ? before.attempts : []).filter(
    (at) => since === undefined || Temporal.Instant.compare(at, since) > 0,
  );
  if (attempts.length >= maxAttempts) return false;
  const record = {
    ...{ service: service.id, place, template: service.template },
    ...(iteration === undefined ? {} : { iteration }),
  };
  draft.put('restart', { ...record, attempts: [...attempts, turn.now.toString()] });
  return true;
}
