import type { Exits } from './exits.ts';
import { exitCodeOf } from './state.ts';
import type { ContainerStore } from './store.ts';

type Needs = { containers: ContainerStore; exits: Exits };

/** The exit code, at once when it does not run. A container that is removed meanwhile has the code of its end. */
export async function waitForContainer(engine: Needs, ref: string): Promise<number> {
  const before = engine.containers.find(ref);
  await engine.exits.recorded(before.id);
  return exitCodeOf((engine.containers.get(before.id) ?? before).state);
}
