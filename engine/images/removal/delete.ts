import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import type { Platform } from '../configuration/platform.ts';
import { emitImageEvent } from '../event.ts';
import { familiarReference, parseReference, withDefaultTag, type Reference } from '../names/reference.ts';
import type { Image } from '../store.ts';

type Needs = Pick<Engine, 'db' | 'images' | 'imageUsage' | 'events'>;

export type Removal = { untagged: string } | { deleted: string };

type Options = { force: boolean; noprune: boolean };

/** A reason against a removal; force does not override a `hard` one. */
type Conflict = { hard: boolean; why: string };

/**
 * Removes a name, and the image with its last name. A ref that is an id removes the image with its only name, or with
 * all names if forced. Parents without name and children are removed too.
 *
 * Synchronous, so that no use of the image can begin between the check and the removal.
 */
export function deleteImage(engine: Needs, ref: string, { force, noprune }: Options): Removal[] {
  const image = engine.images.find(ref);
  const platforms = engine.images.withPlatforms(image);
  const removals: Removal[] = [];
  const isId = engine.images.isId(image, ref);
  if (isId) {
    refuseIf(conflictOf(engine, platforms, { force, names: !hasOneName(engine, image) }), image);
  } else {
    untag(engine, image, withDefaultTag(parseReference(ref)), force, removals);
    const nameless = platforms.filter(({ id }) => engine.images.referencesOf(id).length === 0);
    // The request was for the name only: an image that is still needed stays, without a name.
    if (conflictOf(engine, nameless, { force, names: false }) !== undefined) return removals;
  }
  for (const each of platforms) {
    const hasNames = engine.images.referencesOf(each.id).length > 0;
    // Another platform may have names of its own, or belong to a further index.
    if (hasNames && !(isId && each === image)) continue;
    remove(engine, each, removals);
    if (!noprune) pruneParents(engine, each.parentId, removals);
  }
  return removals;
}

/**
 * Removes single platforms of an image, from all names that have them. Throws `invalid` unless forced, `notFound` for a
 * platform that is not here, `conflict` for one that a running container uses.
 */
export function deletePlatforms(engine: Needs, ref: string, platforms: readonly Platform[], force: boolean): Removal[] {
  if (!force) {
    const text = 'Content will be removed from all images referencing this variant. Use --force to force delete.';
    throw new EngineError('invalid', text);
  }
  const images = platforms.map((platform) => engine.images.find(ref, platform));
  for (const image of images) refuseIf(conflictOf(engine, [image], { force, names: false }), image);
  return [...new Set(images)].flatMap((image) => {
    const manifests = engine.images.documents.ofImage(image.id).map(({ digest }) => digest);
    engine.images.delete(image.id, () => emitImageEvent(engine, 'delete', image));
    return (manifests.length > 0 ? manifests : [image.id]).map((deleted) => ({ deleted }));
  });
}

/** Removes one name, and digests that belong to it. */
function untag(engine: Needs, image: Image, wanted: Reference, force: boolean, removals: Removal[]): void {
  const user = engine.images.withPlatforms(image).flatMap(({ id }) => engine.imageUsage.usedBy(id))[0];
  if (!force && user !== undefined && engine.images.referencesOf(image.id).length === 1) {
    const name = familiarReference(wanted).replace(/:latest$/, '');
    throw new EngineError(
      'conflict',
      `conflict: unable to remove repository reference "${name}" (must force) - ` +
        `container ${shortId(user.id)} is using its referenced image ${shortHex(image.id)}`,
    );
  }
  takeName(engine, image, wanted, removals);
  const sameRepository = engine.images
    .referencesOf(image.id)
    .filter(({ repository }) => repository === wanted.repository);
  if (wanted.digest === undefined && sameRepository.every(({ tag }) => tag === undefined)) {
    // Digests belong to the tags of their repository, and go with the last of them.
    for (const name of sameRepository) takeName(engine, image, name, removals);
  }
}

function conflictOf(
  engine: Needs,
  platforms: readonly Image[],
  { force, names }: { force: boolean; names: boolean },
): Conflict | undefined {
  const hasChildren = platforms.some(({ id }) => engine.images.childrenOf(id).length > 0);
  if (hasChildren) return { hard: true, why: 'image has dependent child images' };
  const users = platforms.flatMap(({ id }) => engine.imageUsage.usedBy(id));
  const running = users.find((user) => user.running);
  if (running !== undefined) {
    return { hard: true, why: `image is being used by running container ${shortId(running.id)}` };
  }
  if (force) return undefined;
  if (names) return { hard: false, why: 'image is referenced in multiple repositories' };
  const stopped = users[0];
  if (stopped === undefined) return undefined;
  return { hard: false, why: `image is being used by stopped container ${shortId(stopped.id)}` };
}

function refuseIf(conflict: Conflict | undefined, image: Image): void {
  if (conflict === undefined) return;
  const remedy = conflict.hard ? 'cannot be forced' : 'must be forced';
  const text = `conflict: unable to delete ${shortHex(image.id)} (${remedy}) - ${conflict.why}`;
  throw new EngineError('conflict', text);
}

/** At most one tag, and digests only of the same repository. */
function hasOneName(engine: Needs, image: Image): boolean {
  const names = engine.images.referencesOf(image.id);
  if (names.length <= 1) return true;
  const tags = names.filter(({ tag }) => tag !== undefined);
  return tags.length === 1 && names.every(({ repository }) => repository === tags[0]!.repository);
}

function takeName(engine: Needs, image: Image, name: Reference, removals: Removal[]): void {
  engine.db.transaction(() => {
    engine.images.unrefer(name);
    emitImageEvent(engine, 'untag', image);
  });
  removals.push({ untagged: familiarReference(name) });
}

function remove(engine: Needs, image: Image, removals: Removal[]): void {
  for (const name of engine.images.referencesOf(image.id)) takeName(engine, image, name, removals);
  const layers = engine.images.delete(image.id, () => emitImageEvent(engine, 'delete', image));
  for (const deleted of [image.id, ...layers]) removals.push({ deleted });
}

/** A parent without name, child and container only served the image above it. */
function pruneParents(engine: Needs, parentId: string | undefined, removals: Removal[]): void {
  const parent = parentId === undefined ? undefined : engine.images.get(parentId);
  if (parent === undefined || engine.images.referencesOf(parent.id).length > 0) return;
  if (conflictOf(engine, [parent], { force: false, names: false }) !== undefined) return;
  remove(engine, parent, removals);
  pruneParents(engine, parent.parentId, removals);
}

function shortHex(imageId: string): string {
  return shortId(imageId.slice('sha256:'.length));
}
