import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import type { ImageStore } from '../../images/store.ts';
import type { Layers } from '../../layers/layers.ts';
import { EngineError } from '../../lib/errors.ts';
import { presentLinks } from '../links/links.ts';
import { networkOwner } from '../links/network-owner.ts';
import { presentInspect, type Around } from '../present.ts';
import type { Inspect } from '../schema.ts';
import type { Container, ContainerStore } from '../store.ts';

export type InspectNeeds = Pick<
  Engine,
  'clock' | 'config' | 'containers' | 'deliveries' | 'execs' | 'health' | 'images' | 'layers' | 'networks'
>;

/** Converts an inspect to the form of some versions of the API. The same function is used for all clients of these. */
export type InspectForm = (shown: Inspect) => object;

/** The last inspects of a container in each form, with the data of other records that they used. */
type Said = Readonly<{ around: Around; texts: Map<InspectForm, string> }>;

/** Records are immutable, so an inspect stays valid while the record and the other data are the same. */
const said = new WeakMap<Container, Said>();

/** Everything about one container, as cached JSON text, because clients repeat inspects. Specification, endpoint 3. */
export async function inspectContainer(
  engine: InspectNeeds,
  ref: string,
  { withSize, form }: { withSize: boolean; form: InspectForm },
): Promise<string> {
  const container = engine.containers.find(ref);
  const around = aroundOf(engine, container, true);
  if (withSize) {
    // Read before the wait, during which the container may be removed.
    const shown = form(presentInspect(container, around, graphDriverOf(engine.layers, container.id)));
    const { writableBytes, rootBytes } = await engine.layers.size(container.id);
    return JSON.stringify({ ...shown, SizeRw: writableBytes, SizeRootFs: rootBytes });
  }
  return textOf(engine, container, around, form);
}

function textOf({ layers }: InspectNeeds, container: Container, around: Around, form: InspectForm): string {
  let last = said.get(container);
  if (last === undefined || !isSame(last.around, around)) {
    last = { around, texts: new Map() };
    said.set(container, last);
  }
  const before = last.texts.get(form);
  if (before !== undefined) return before;
  const text = JSON.stringify(form(presentInspect(container, around, graphDriverOf(layers, container.id))));
  last.texts.set(form, text);
  return text;
}

function isSame(one: Around, other: Around): boolean {
  return (
    one.endpoints === other.endpoints &&
    one.health === other.health &&
    one.imageName === other.imageName &&
    one.manifest?.digest === other.manifest?.digest &&
    one.filesOf === other.filesOf &&
    one.delivery === other.delivery &&
    one.config.dataRoot === other.config.dataRoot &&
    String(one.execIds) === String(other.execIds) &&
    String(one.links) === String(other.links)
  );
}

/** Data of other records that is shown with a container; execs and links only in an inspect. */
export function aroundOf(
  engine: InspectNeeds,
  container: Container,
  whole: boolean,
  linkNames: readonly string[] = [],
): Around {
  const endpoints = engine.networks.endpointsOf(container.id);
  return {
    config: engine.config,
    now: engine.clock.now(),
    endpoints,
    exposed: engine.networks.exposedPorts(container.id, container.config.ExposedPorts),
    imageName: imageNameOf(engine.images, container),
    manifest: engine.images.documents.manifestOf(container.imageId),
    health: engine.health.of(container.id),
    execIds: whole ? engine.execs.runningIn(container.id) : [],
    filesOf: whole ? filesOwner(engine.containers, container) : container.id,
    links: whole ? presentLinks(engine.containers, container) : null,
    linkNames,
    delivery: whole ? engine.deliveries.statusOf(container.id) : undefined,
  };
}

/** The other container may have been removed. */
function filesOwner(containers: ContainerStore, container: Container): string {
  try {
    return networkOwner(container, (ref) => containers.find(ref)).id;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return container.id;
  }
}

/** If the name belongs to another image now, the id is shown, as in docker. */
function imageNameOf(images: ImageStore, { imageName, imageId }: Container): string {
  const known = images.get(imageId);
  if (known === undefined) return imageId;
  const tags = images.tagsOf(imageId);
  const named = imageName.includes(':') || imageName.includes('@') ? imageName : `${imageName}:latest`;
  return tags.includes(named) || images.isId(known, imageName) || imageName.includes('@') ? imageName : imageId;
}

/** A container's layers never change. */
function graphDriverOf(layers: Layers, id: string): Record<string, string> {
  const { base, lower, upper, work, target } = layers.overlay(id);
  return {
    LowerDir: lower.map((folder) => join(base, folder)).join(':'),
    MergedDir: target,
    UpperDir: upper,
    WorkDir: work,
  };
}
