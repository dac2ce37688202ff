import type { Summary } from '@gantry/client/containers.ts';

import { call } from '../api/request.ts';
import { confirm } from '../parts/confirm.tsx';
import { attempt, notify } from '../parts/notices.tsx';
import { countText } from '../parts/texts.ts';
import { nameOf } from './names.ts';

export type Action = 'start' | 'stop' | 'restart' | 'pause' | 'unpause';

const DONE: Readonly<Record<Action, string>> = {
  start: 'Started',
  stop: 'Stopped',
  restart: 'Restarted',
  pause: 'Paused',
  unpause: 'Resumed',
};
const UNDO: Readonly<Partial<Record<Action, readonly [action: Action, word: string]>>> = {
  start: ['stop', 'Stop again'],
  stop: ['start', 'Start again'],
  pause: ['unpause', 'Resume'],
  unpause: ['pause', 'Pause again'],
};
/** Requests at once: a browser has six connections, two of which are streams. */
const AT_ONCE = 3;

/** Does something to containers, and offers to take it back. */
export async function act(action: Action, chosen: readonly Summary[]): Promise<void> {
  const done = await each(chosen, async ({ Id }) => await call('POST', `/containers/${Id}/${action}`));
  if (done.length === 0) return;
  const undo = UNDO[action];
  notify(`${DONE[action]} ${namesText(done)}`, {
    ...(undo !== undefined && { undo: { word: undo[1], run: () => void act(undo[0], done) } }),
  });
}

/** Removes containers after a question. */
export async function removeContainers(chosen: readonly Summary[]): Promise<boolean> {
  const running = chosen.filter(({ State }) => State === 'running' || State === 'paused').length;
  const isSure = await confirm({
    title: `Remove ${countText(chosen.length, 'container')}?`,
    lines: chosen.map(nameOf),
    note: running === 0 ? 'Their files and logs go too; named volumes stay.' : `${running} of them run and are killed.`,
    word: 'Remove',
  });
  if (!isSure) return false;
  const query = { force: true, v: true };
  const done = await each(chosen, async ({ Id }) => await call('DELETE', `/containers/${Id}`, { query }));
  if (done.length > 0) notify(`Removed ${namesText(done)}`);
  return done.length > 0;
}

/** The containers with which it succeeded. */
async function each(chosen: readonly Summary[], one: (container: Summary) => Promise<unknown>): Promise<Summary[]> {
  const left = [...chosen];
  const done: Summary[] = [];
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const container = next;
      if (await attempt(async () => await one(container))) done.push(container);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return done;
}

function namesText(list: readonly Summary[]): string {
  return list.length > 3 ? countText(list.length, 'container') : list.map(nameOf).join(', ');
}
