import { NO_PLACE } from '../endpoints/endpoint.ts';
import { loopbackNetns } from '../endpoints/namespace.ts';
import type { NetworkDriver } from './driver.ts';

/** The machine's own network: no namespace to create, only a record of the endpoint. */
export const hostDriver: NetworkDriver = {
  name: 'host',
  join: () => ({ netns: undefined, place: NO_PLACE }),
  leave: () => undefined,
  options: () => ({}),
};

/** A namespace with only loopback. */
export const nullDriver: NetworkDriver = {
  name: 'null',
  join: (_network, { usersOf }) => ({ netns: loopbackNetns(usersOf), place: NO_PLACE }),
  leave: () => undefined,
  options: () => ({}),
};
