/**
 * For `node --import`: the process ends itself by SIGKILL before a given step. Steps are the calls that change folders,
 * and the statements of SQLite, of the main thread after `arm` was called.
 *
 * `GANTRY_KILL_AT` is the step's number, from 1. A program that has fewer steps ends as usual.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync, StatementSync } from 'node:sqlite';

const last = Number(process.env.GANTRY_KILL_AT);
let steps = 0;
let isArmed = false;

/** From here on steps count. */
export function arm(): void {
  isArmed = true;
}

function step(): void {
  if (!isArmed) return;
  steps += 1;
  if (steps === last) process.kill(process.pid, 'SIGKILL');
}

function counted<T extends object>(owner: T, name: keyof T & string): void {
  const original = owner[name] as (...values: unknown[]) => unknown;
  const wrapper = function (this: unknown, ...values: unknown[]): unknown {
    step();
    return Reflect.apply(original, this, values);
  };
  Object.defineProperty(owner, name, { value: wrapper, configurable: true, writable: true });
}

counted(fs, 'renameSync');
counted(fs, 'rmSync');
counted(fs, 'linkSync');
counted(fs, 'mkdirSync');
counted(DatabaseSync.prototype, 'exec');
counted(StatementSync.prototype, 'run');
syncBuiltinESMExports();
