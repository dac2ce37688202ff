import type { EventMessage } from '@gantry/client/system.ts';

import { Store } from '../parts/store.ts';
import { open, SessionOver } from './request.ts';
import { bytesOf, follow, jsonLines } from './streams.ts';

type Connection = 'connecting' | 'live' | 'lost' | 'over';
type Listener = Readonly<{ onEvent: (event: EventMessage) => void; onConnect?: () => void }>;

/** The state of the connection to the engine, as its stream of events shows it. */
export const connection = new Store<Connection>('connecting');

const listeners = new Set<Listener>();

/** Calls back for each event, and when events may have been missed; returns the function that ends it. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  if (connection.value === 'live') listener.onConnect?.();
  return () => listeners.delete(listener);
}

/** Follows the events for as long as the page is open. */
export function followEvents(): void {
  follow({
    read: async (signal) => {
      const response = await open('GET', '/events', { signal });
      connection.set('live'); // with the head: no event is missed from now on
      for (const { onConnect } of listeners) onConnect?.();
      for await (const event of jsonLines<EventMessage>(bytesOf(response))) {
        for (const { onEvent } of listeners) onEvent(event);
      }
    },
    onBreak: (error) => connection.set(error instanceof SessionOver ? 'over' : 'lost'),
  });
}
