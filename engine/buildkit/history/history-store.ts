import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { hasCode } from '../../lib/errors.ts';
import { namesIn } from '../../lib/folders.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { BuildRecord } from './record.ts';

/** As dockerd's. */
const MAX_RECORDS = 50;
const MAX_PINNED = 50;
const [RECORD, LOG] = ['.json', '.log'];
const check = lazyCheck(BuildRecord);

/**
 * The builds that are over: two files each, of which the record comes last, and goes first. A log without a record is removed at
 * the next start. The newest are kept.
 */
export class HistoryStore {
  readonly #folder: string;
  readonly #log: Pick<Engine['log'], 'warn'>;
  readonly #records = new Map<string, BuildRecord>();

  constructor({ config, log }: Pick<Engine, 'config' | 'log'>) {
    this.#folder = join(config.dataRoot, 'build-history');
    this.#log = log;
    for (const name of namesIn(this.#folder).filter((each) => each.endsWith(RECORD))) this.#load(name);
    const known = new Set(
      [...this.#records.keys()].flatMap((ref) => [this.#place(ref, RECORD), this.#place(ref, LOG)]),
    );
    for (const name of namesIn(this.#folder)) {
      const path = join(this.#folder, name);
      if (!known.has(path)) rmSync(path, { force: true });
    }
  }

  get(ref: string): BuildRecord | undefined {
    return this.#records.get(ref);
  }

  /** The newest first. */
  all(): BuildRecord[] {
    return [...this.#records.values()].toSorted((a, b) =>
      Temporal.Instant.compare(Temporal.Instant.from(b.createdAt), Temporal.Instant.from(a.createdAt)),
    );
  }

  /** Stores a build, and returns the refs of those that went for it. A full disk costs the record, not the build. */
  add(record: BuildRecord, log: Buffer): string[] {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(this.#place(record.ref, LOG), log, { mode: 0o600 });
      this.#write(record);
    } catch (error) {
      this.#log.warn({ err: error }, 'a build is not written into the history');
      this.delete(record.ref);
      return [];
    }
    const old = this.all()
      .filter(({ isPinned }) => !isPinned)
      .slice(MAX_RECORDS);
    for (const { ref } of old) this.delete(ref);
    return old.map(({ ref }) => ref);
  }

  /** False if so many are pinned already that this one cannot be. */
  pin(ref: string, isPinned: boolean): boolean {
    const pinned = this.all().filter((each) => each.isPinned && each.ref !== ref);
    if (isPinned && pinned.length >= MAX_PINNED) return false;
    this.#write({ ...this.#records.get(ref)!, isPinned });
    return true;
  }

  delete(ref: string): void {
    this.#records.delete(ref);
    rmSync(this.#place(ref, RECORD), { force: true });
    rmSync(this.#place(ref, LOG), { force: true });
  }

  /** Empty for a log that is not there. */
  async log(ref: string): Promise<Buffer> {
    try {
      return await readFile(this.#place(ref, LOG));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return Buffer.alloc(0);
      throw error;
    }
  }

  #write(record: BuildRecord): void {
    const path = this.#place(record.ref, RECORD);
    const beside = `${path}.new`;
    writeFileSync(beside, JSON.stringify(record), { mode: 0o600 });
    renameSync(beside, path);
    this.#records.set(record.ref, record);
  }

  #load(name: string): void {
    try {
      const record: unknown = JSON.parse(readFileSync(join(this.#folder, name), 'utf8'));
      if (check.Check(record) && `${nameOf(record.ref)}${RECORD}` === name) this.#records.set(record.ref, record);
    } catch (error) {
      // The power failed before all of it was on the disk: it is removed with the unknown files.
      this.#log.warn({ err: error, name }, 'a record of a build cannot be read');
    }
  }

  #place(ref: string, suffix: string): string {
    return join(this.#folder, `${nameOf(ref)}${suffix}`);
  }
}

/** Refs are words of clients. */
function nameOf(ref: string): string {
  return sha256(ref).replace('sha256:', '');
}
