import type { Events } from '../events/events.ts';
import type { Container, ContainerStore } from './store.ts';

/** Emits an event of a container with dockerd's attributes: its labels, image and name, and those of the event. */
export function emitContainer(
  events: Events,
  action: string,
  container: Container,
  more: Readonly<Record<string, string>> = {},
  how: { wake?: boolean } = {},
): void {
  const { id, name, imageName, config } = container;
  events.emit('container', action, id, { ...config.Labels, image: imageName, name, ...more }, how);
}

/** Like `emit`, at the end of work during which the container may have been removed: no event follows its `destroy`. */
export function emitIfThere(
  { containers, events }: { containers: ContainerStore; events: Events },
  action: string,
  id: string,
  more: Readonly<Record<string, string>> = {},
): void {
  const container = containers.get(id);
  if (container !== undefined) emitContainer(events, action, container, more);
}

/** Emits the mounts of volumes at the start of their container. */
export function emitMounts(events: Events, { id, mounts }: Container): void {
  for (const { type, name = '', driver = '', destination, propagation, writable } of mounts) {
    if (type !== 'volume') continue;
    const attributes = { container: id, destination, driver, propagation, 'read/write': String(writable) };
    events.emit('volume', 'mount', name, attributes);
  }
}

/** Emits the unmounts at its end. */
export function emitUnmounts(events: Events, { id, mounts }: Container): void {
  for (const { type, name = '', driver = '' } of mounts) {
    if (type === 'volume') events.emit('volume', 'unmount', name, { container: id, driver });
  }
}
