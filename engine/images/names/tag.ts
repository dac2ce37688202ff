import type { Engine } from '../../engine.ts';
import { emitImageEvent } from '../event.ts';
import { familiarReference, parseRepoAndTag, type Reference } from './reference.ts';

type Needs = Pick<Engine, 'db' | 'images' | 'clock' | 'events'>;

/** Gives an image another name; another image with this name loses it. */
export function tagImage(engine: Needs, ref: string, repo: string, tag: string | undefined): void {
  const reference = parseRepoAndTag(repo, tag);
  const image = engine.images.find(ref);
  giveName(engine, image.id, reference, engine.images.targetOf(ref, image));
}

/** Gives an image a name on behalf of a client, which pulls and loads do not count as. */
export function giveName(engine: Needs, imageId: string, reference: Reference, target?: string): void {
  engine.db.transaction(() => {
    engine.images.refer(reference, imageId, target);
    engine.images.setTaggedAt(imageId, engine.clock.now());
    emitImageEvent(engine, 'tag', engine.images.find(imageId), familiarReference(reference));
  });
}
