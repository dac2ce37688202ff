import { Type, type Static } from 'typebox';

import type { Database } from '../../db/database.ts';
import { createTable } from '../../db/migration-sql.ts';
import { RecordTable } from '../../db/table.ts';
import { Assignment, NodeTemplate, TaskStatus } from '../wire/task-messages.ts';

const AgentTask = Type.Object({
  ...Assignment.properties,
  /** This node's own id then: a node that has left and joined again has another. */
  node: Type.String(),
  /** Template of its container; missing where it was never to run. */
  made: Type.Optional(NodeTemplate),
  status: TaskStatus,
  /** Whether the leader has stored the status. */
  acknowledged: Type.Boolean(),
  /** It needs credentials, which are not stored: they come with all tasks at the beginning of a session. */
  needsAuth: Type.Boolean(),
  /** Its record is gone: its container is being removed. */
  isGone: Type.Optional(Type.Literal(true)),
});
export type AgentTask = Readonly<Static<typeof AgentTask>>;

/** The tasks of this node, so that they go on without a manager and are found again by the next daemon. */
export class TaskStore {
  readonly #db: Database;
  readonly #table;

  constructor(db: Database) {
    this.#db = db;
    db.migrate('cluster_tasks', [createTable('cluster_tasks')]);
    this.#table = new RecordTable(db, { name: 'cluster_tasks', schema: AgentTask, id: ({ id }) => id });
  }

  get(id: string): AgentTask | undefined {
    return this.#table.get(id);
  }

  all(): readonly AgentTask[] {
    return this.#table.all();
  }

  put(task: AgentTask): void {
    this.#table.put(task);
  }

  /** Undefined where the task is gone. */
  change(id: string, work: (current: AgentTask) => AgentTask): AgentTask | undefined {
    return this.#table.has(id) ? this.#table.change(id, work) : undefined;
  }

  delete(id: string): void {
    this.#table.delete(id);
  }

  /** Several changes in one commit. */
  together<T>(work: () => T): T {
    return this.#db.transaction(work);
  }
}
