import type { Database } from '../db/database.ts';
import type { Shim } from '../runtime/shim/shim.ts';
import { ExecStore } from './store.ts';

type ExecParts = { execs: ExecStore; execShims: Map<string, Shim> };

/** The parts that this domain adds to the engine. */
export function execParts({ db }: { db: Database }): ExecParts {
  return { execs: new ExecStore(db), execShims: new Map() };
}
