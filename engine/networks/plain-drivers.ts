import type { NetworkDriver } from './driver.ts';
import { NO_PLACE } from './endpoint.ts';
import { loopbackNetns } from './namespace.ts';

/** The machine's own network: there is no namespace to hand out, only a record that the container is in it. */
export const hostDriver: NetworkDriver = {
  name: 'host',
  join: () => ({ netns: undefined, place: NO_PLACE }),
  leave: () => undefined,
  options: () => ({}),
};

/** A namespace with loopback alone. */
export const nullDriver: NetworkDriver = {
  name: 'null',
  join: () => ({ netns: loopbackNetns(), place: NO_PLACE }),
  leave: () => undefined,
  options: () => ({}),
};
