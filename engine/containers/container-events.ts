import type { Events } from '../events/events.ts';
import type { Container } from './store.ts';

/** Tells of a container, with the attributes that dockerd gives: its labels, image and name, and what is special. */
export function tell(events: Events, action: string, container: Container, more: Record<string, string> = {}): void {
  const { id, name, imageName, config } = container;
  events.emit('container', action, id, { ...config.Labels, image: imageName, name, ...more });
}

/** Volumes come with the start of a container. */
export function tellMounted(events: Events, container: Container): void {
  for (const { type, name = '', destination, propagation, writable } of container.mounts) {
    if (type !== 'volume') continue;
    const attributes = {
      container: container.id,
      destination,
      driver: 'local',
      propagation,
      'read/write': String(writable),
    };
    events.emit('volume', 'mount', name, attributes);
  }
}

/** And go with its end. */
export function tellUnmounted(events: Events, container: Container): void {
  for (const { type, name = '' } of container.mounts) {
    if (type === 'volume') events.emit('volume', 'unmount', name, { container: container.id, driver: 'local' });
  }
}
