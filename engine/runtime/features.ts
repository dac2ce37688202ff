import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const TIMEOUT_MS = 5000;

/** Answers of runtimes to `features`, by the path of the program: each is asked once. */
export class RuntimeFeatures {
  readonly #known = new Map<string, Promise<string | undefined>>();

  /** The features as JSON text; undefined for a runtime that does not know the command, as crun before 1.9. */
  async of(path: string): Promise<string | undefined> {
    let features = this.#known.get(path);
    if (features === undefined) this.#known.set(path, (features = ask(path)));
    return await features;
  }
}

async function ask(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await execute(path, ['features'], { timeout: TIMEOUT_MS });
    return JSON.stringify(JSON.parse(stdout));
  } catch {
    return undefined; // any failure means that the program does not describe itself
  }
}
