import { refuseLargeSettings } from '../../buildfile/apply-setting.ts';
import { applyChanges } from '../../buildfile/changes.ts';
import type { Engine } from '../../engine.ts';
import { childImage } from '../../images/configuration/child-image.ts';
import { emitImageEvent } from '../../images/event.ts';
import { familiarReference, type Reference } from '../../images/names/reference.ts';
import { giveName } from '../../images/names/tag.ts';
import type { Image, ImageStore } from '../../images/store.ts';
import { commitLayer } from '../../layers/commit.ts';
import { EngineError } from '../../lib/errors.ts';
import { measure } from '../../lib/measures.ts';
import { refuseManyLabels } from '../../records/labels.ts';
import { runConfigOf } from '../../records/run-config.ts';
import { emitIfThere } from '../container-events.ts';
import type { ContainerConfigBody } from '../settings/container-config-schema.ts';
import type { Container } from '../store.ts';
import { mergeConfig } from './merge-config.ts';
import { pauseForCommit, type PauseForCommitNeeds } from './pause-for-commit.ts';

type CommitNeeds = PauseForCommitNeeds &
  Pick<Engine, 'archives' | 'blobs' | 'clock' | 'db' | 'images' | 'layers' | 'locks'>;

type CommitRequest = Readonly<{
  name: Reference | undefined;
  author: string;
  comment: string;
  pause: boolean;
  changes: readonly string[];
  /** Instead of the container's own settings. */
  config: ContainerConfigBody | undefined;
}>;

/**
 * Makes an image of a container: its writable layer on top of its image. It goes on when the client hangs up. Specification,
 * endpoint 41.
 *
 * Throws `notFound`, `invalid` for changes, `conflict` for one that is being removed.
 */
export async function commitContainer(engine: CommitNeeds, ref: string, request: CommitRequest): Promise<Image> {
  const measured = measure('container', 'commit');
  if (ref === '') throw new EngineError('invalid', 'the container to commit is not named');
  const container = engine.containers.find(ref);
  const { id, imageId } = container;
  if (container.state.status === 'removing') {
    throw new EngineError('conflict', `You cannot commit container ${id} which is being removed`);
  }
  const own = runConfigOf(container.config);
  refuseManyLabels(request.config?.Labels, 'the image');
  const asked = request.config === undefined ? own : runConfigOf(request.config);
  const config = mergeConfig(applyChanges(request.changes, asked), own);
  refuseLargeSettings(config);
  const parent = imageId === '' ? undefined : parentOf(engine.images, imageId);
  using leases = new DisposableStack();
  const layer = await changesOf(engine, container, request.pause, leases);
  const { author, comment } = request;
  const child = childImage(engine, { parent, layer, config, containerConfig: own, containerId: id, author, comment });
  const image = engine.images.insert(child.id, child.json, (made) => {
    emitImageEvent(engine, 'create', made);
    if (parent !== undefined) engine.images.setParent(made.id, parent.id);
    if (request.name !== undefined) giveName(engine, made.id, request.name);
    const imageRef = request.name === undefined ? '' : familiarReference(request.name);
    emitIfThere(engine, 'commit', id, { comment, imageID: made.id, imageRef });
  });
  measured();
  return image;
}

/** Its files stay while they are read, also when it is removed meanwhile. */
async function changesOf(engine: CommitNeeds, { id }: Container, pause: boolean, leases: DisposableStack) {
  using _copy = engine.runs.of(id).addCopy(() => undefined);
  using _still = pause ? pauseForCommit(engine, id) : undefined;
  return await commitLayer(engine, id, leases);
}

function parentOf(images: ImageStore, imageId: string): Image {
  const parent = images.get(imageId);
  if (parent === undefined) throw new EngineError('notFound', `No such image: ${imageId}`);
  return parent;
}
