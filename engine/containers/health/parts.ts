import type { LiveConfig } from '../../config/live-config.ts';
import { HealthChecks, type HealthNeeds } from './checks.ts';

type Needs = Omit<HealthNeeds, 'config'> & { live: LiveConfig };

/** The parts that this room adds to the engine. */
export function healthParts({ live, ...needs }: Needs, undo: AsyncDisposableStack): { health: HealthChecks } {
  const engine = {
    ...needs,
    get config() {
      return live.current;
    },
  };
  return { health: undo.use(new HealthChecks(engine)) };
}
