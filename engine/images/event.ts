import type { Events } from '../events/events.ts';
import type { Image } from './store.ts';

/** Image events carry the image's labels and a name: what it was called, or else its id. */
export function emitImageEvent(
  engine: { events: Events },
  action: string,
  image: Image,
  name: string = image.id,
): void {
  engine.events.emit('image', action, image.id, { ...image.config.Labels, name });
}
