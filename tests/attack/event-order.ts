/** An event of a container, as a client gets it. */
export type Told = Readonly<{ action: string; id: string; timeNano: number }>;

type State = 'none' | 'idle' | 'running' | 'paused' | 'gone';

/** The states in which an event may come, and the one that it leads to. Other events do not change the state. */
const STEPS: Readonly<Record<string, Readonly<{ from: readonly State[]; to: State }>>> = {
  create: { from: ['none'], to: 'idle' },
  start: { from: ['idle'], to: 'running' },
  pause: { from: ['running'], to: 'paused' },
  unpause: { from: ['paused'], to: 'running' },
  die: { from: ['running', 'paused'], to: 'idle' },
  destroy: { from: ['idle'], to: 'gone' },
};

/** They need an existing process. */
const OF_A_PROCESS = /^(kill|exec_create|exec_start|health_status)\b/;

/** The errors in the order of the events of all containers. */
export function disorder(events: readonly Told[]): string[] {
  const wrong: string[] = [];
  const states = new Map<string, State>();
  let last = 0;
  for (const { action, id, timeNano } of events) {
    const state = states.get(id) ?? 'none';
    const about = `${action} of ${id.slice(0, 12)}, which is ${state}`;
    if (timeNano < last) wrong.push(`${about}: it came too late`);
    last = timeNano;
    const step = STEPS[action];
    if (step?.from.includes(state) === false) wrong.push(about);
    const isProcess = state === 'running' || state === 'paused';
    if (step === undefined && (state === 'none' || state === 'gone')) wrong.push(about);
    if (OF_A_PROCESS.test(action) && !isProcess) wrong.push(about);
    if (step !== undefined) states.set(id, step.to);
  }
  return wrong;
}

/** The containers that were created and not destroyed. */
export function living(events: readonly Told[]): Set<string> {
  const ids = new Set<string>();
  for (const { action, id } of events) {
    if (action === 'create') ids.add(id);
    if (action === 'destroy') ids.delete(id);
  }
  return ids;
}
