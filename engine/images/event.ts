import type { Events } from '../events/events.ts';
import type { Image } from './store.ts';

/** Image events carry the image's labels, and the name that was used, or else the id. */
export function emitImageEvent(
  engine: { events: Events },
  action: string,
  image: Image,
  name: string = image.id,
): void {
  engine.events.emit('image', action, image.id, { ...image.config.Labels, name });
}
