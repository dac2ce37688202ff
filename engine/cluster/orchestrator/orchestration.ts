import { Allocator } from '../allocator/allocate.ts';
import { Scheduler } from '../scheduler/schedule.ts';
import { isUpdating, updateOf } from '../state/defaults.ts';
import type { Draft } from '../state/draft.ts';
import type { NodeRecord, Stored, TaskRecord } from '../state/records.ts';
import { hasEnded, isToRun } from '../state/task-states.ts';
import type { View } from '../state/view.ts';
import { enforce } from './enforce.ts';
import { orphanTasks } from './orphan-tasks.ts';
import { reconcile } from './reconcile.ts';
import { sweep } from './sweep.ts';
import { Earliest, Turn } from './turn.ts';

type About = Readonly<{ service: string } | { node: string }>;
type Failed = (about: About, error: unknown) => void;

const SECONDS_AFTER_FAILURE = 5;

/**
 * Decisions after the writes of a turn: services are reconciled, new tasks get addresses and nodes.
 *
 * Only what a turn's changes touch is looked at, and what has asked to be looked at by now. What is kept between turns
 * (who waits, what is taken) follows from the records, so that a new leader makes it anew; its first turn looks at all.
 */
export class Orchestration {
  readonly #committed: View;
  readonly #newId: () => string;
  /** When to look at a service, or at the tasks of a node, though nothing has changed. */
  readonly #services = new Map<string, Temporal.Instant>();
  readonly #nodes = new Map<string, Temporal.Instant>();
  #parts: Readonly<{ allocator: Allocator; scheduler: Scheduler }> | undefined;
  readonly #failed: Failed;

  /** `committed`: the records under the drafts. `failed` is told of services and nodes that nothing can be decided on. */
  constructor(committed: View, newId: () => string, failed: Failed) {
    this.#committed = committed;
    this.#newId = newId;
    this.#failed = failed;
  }

  /** Decides what follows from a draft. Returns when to run again though nothing has changed. */
  run(draft: Draft, now: Temporal.Instant): Temporal.Instant | undefined {
    const turn = new Turn(now, this.#newId);
    const isFirst = this.#parts === undefined;
    this.#parts ??= { allocator: new Allocator(this.#committed), scheduler: new Scheduler(this.#committed) };
    const touched = isFirst ? this.#everything(draft) : this.#touched(draft);

    for (const id of inOrder(this.#nodes, touched.nodes, now)) {
      if (turn.isOver) {
        leave(this.#nodes, id, now);
        continue;
      }
      const decide = (inner: Draft): Temporal.Instant | undefined => {
        for (const service of enforce(inner, id, turn)) touched.services.add(service);
        return orphanTasks(inner, id, turn);
      };
      setOrDelete(this.#nodes, id, this.#attempt(draft, { node: id }, now, decide));
    }
    for (const id of inOrder(this.#services, touched.services, now)) {
      const decide = (inner: Draft): Temporal.Instant | undefined => reconcile(inner, id, turn);
      if (turn.isOver) leave(this.#services, id, now);
      else setOrDelete(this.#services, id, this.#attempt(draft, { service: id }, now, decide));
    }
    if (isFirst) sweep(draft);
    this.#parts.allocator.run(draft, now);
    const isDone = this.#parts.scheduler.run(draft, now);
    return isDone ? this.#next(now) : now;
  }

  /** Discards the decisions on one object if they fail, such as by a bad record, and tries again later. */
  #attempt(
    draft: Draft,
    about: About,
    now: Temporal.Instant,
    decide: (inner: Draft) => Temporal.Instant | undefined,
  ): Temporal.Instant | undefined {
    try {
      return draft.attempt(decide);
    } catch (error) {
      this.#failed(about, error);
      return now.add({ seconds: SECONDS_AFTER_FAILURE });
    }
  }

  /** Work that did not fit runs in the next turn, at once. */
  #next(now: Temporal.Instant): Temporal.Instant | undefined {
    const all = [...this.#services.values(), ...this.#nodes.values()];
    const next = new Earliest(now);
    for (const at of all) next.at(at);
    return all.some((at) => !next.isAhead(at)) ? now : next.value;
  }

  #everything(draft: Draft): Touched {
    const services = new Set([...draft.all('service')].map(({ id }) => id));
    for (const { service } of draft.all('task')) services.add(service);
    return { services, nodes: new Set([...draft.all('node')].map(({ id }) => id)) };
  }

  /** Services and nodes affected by this turn. */
  #touched(draft: Draft): Touched {
    const touched: Touched = { services: new Set(), nodes: new Set() };
    for (const { kind, id, record } of draft.changes) {
      if (kind === 'task') {
        const task = record ?? this.#committed.get('task', id);
        if (task !== undefined && (record === undefined || isNews(draft, task))) touched.services.add(task.service);
      } else if (kind === 'service') touched.services.add(id);
      else if (kind === 'node') this.#touchByNode(draft, touched, this.#committed.get('node', id), record, id);
      else if (kind === 'cluster') for (const service of draft.all('service')) touched.services.add(service.id);
    }
    return touched;
  }

  #touchByNode(
    draft: Draft,
    { services, nodes }: Touched,
    before: NodeRecord | undefined,
    after: NodeRecord | undefined,
    id: string,
  ): void {
    if (before !== undefined && after !== undefined && fitness(before) === fitness(after)) return;
    nodes.add(id);
    for (const { spec, id: service } of draft.all('service')) {
      if (spec.mode.kind === 'global' || spec.mode.kind === 'global-job') services.add(service);
    }
    if (presence(before) !== presence(after)) for (const { service } of draft.tasksOn(id)) services.add(service);
  }
}

type Touched = { readonly services: Set<string>; readonly nodes: Set<string> };

/** Whether a task's change can have consequences: its progress to where it is to be has none, outside of an update. */
function isNews(draft: Draft, { service, desired, status }: TaskRecord): boolean {
  if (!isToRun(desired) || hasEnded(status.state)) return true;
  const record: Stored<'service'> | undefined = draft.get('service', service);
  return record === undefined || isUpdating(record) || updateOf(record).order === 'start-first';
}

/** All that decides which tasks a node may have. */
function fitness({ spec, role, description, status }: NodeRecord): string {
  return JSON.stringify([spec, role, description, status.state, status.address]);
}

/** Whether a node keeps its tasks. */
function presence(node: NodeRecord | undefined): string {
  if (node === undefined) return 'removed';
  return `${node.status.state === 'down' ? 'down' : 'up'} ${node.spec.availability === 'drain' ? 'drained' : ''}`;
}

/** Due services first, the longest waiting before others; then the touched ones. */
function inOrder(
  waiting: ReadonlyMap<string, Temporal.Instant>,
  touched: ReadonlySet<string>,
  now: Temporal.Instant,
): Set<string> {
  const due = [...waiting].filter(([, at]) => Temporal.Instant.compare(at, now) <= 0);
  due.sort(([, a], [, b]) => Temporal.Instant.compare(a, b));
  return new Set([...due.map(([id]) => id), ...touched]);
}

/** For the next turn; what is due already keeps its place. */
function leave(waiting: Map<string, Temporal.Instant>, id: string, now: Temporal.Instant): void {
  const at = waiting.get(id);
  if (at === undefined || Temporal.Instant.compare(at, now) > 0) waiting.set(id, now);
}

function setOrDelete(map: Map<string, Temporal.Instant>, id: string, at: Temporal.Instant | undefined): void {
  map.delete(id); // what is due again comes after what is due still
  if (at !== undefined) map.set(id, at);
}
