import { join } from 'node:path';

import type { Config } from '../config/config.ts';
import type { ExecStore } from '../exec/store.ts';
import type { ImageStore } from '../images/store.ts';
import type { Layers } from '../layers/layers.ts';
import type { Clock } from '../lib/clock.ts';
import type { Networks } from '../networks/networks.ts';
import { networkNameOf } from '../networks/present.ts';
import { presentLinks } from './links.ts';
import { presentInspect, type Around } from './present.ts';
import type { Inspect } from './schema.ts';
import type { Container, ContainerStore } from './store.ts';

export type InspectNeeds = {
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  execs: ExecStore;
  images: ImageStore;
  layers: Layers;
  networks: Networks;
};

/** Everything about one container. Specification, endpoint 3. */
export async function inspectContainer(engine: InspectNeeds, ref: string, withSize: boolean): Promise<Inspect> {
  const container = engine.containers.find(ref);
  const shown = presentInspect(container, aroundOf(engine, container, true));
  if (!withSize) return shown;
  const { writableBytes, rootBytes } = await engine.layers.size(container.id);
  return { ...shown, SizeRw: writableBytes, SizeRootFs: rootBytes };
}

/** What stands around a container while it is shown. The overlay's folders are for an inspect alone. */
export function aroundOf(
  engine: InspectNeeds,
  container: Container,
  whole: boolean,
  linkNames: readonly string[] = [],
): Around {
  const attachment = engine.networks.attachmentOf(container.id);
  return {
    config: engine.config,
    now: engine.clock.now(),
    attachment,
    networkId: attachment?.networkId ?? lastNetworkId(engine.networks, container),
    imageName: imageNameOf(engine.images, container),
    execIds: whole ? engine.execs.runningIn(container.id) : [],
    links: whole ? presentLinks(engine.containers, container) : null,
    linkNames,
    graphDriver: whole ? graphDriverOf(engine.layers, container.id) : {},
  };
}

/** Only of a network that there is: a daemon without a bridge has none of that name. */
function lastNetworkId(networks: Networks, { state, hostConfig }: Container): string {
  const name = state.status === 'created' ? undefined : networkNameOf(hostConfig.NetworkMode);
  return networks.list().find((network) => network.name === name)?.id ?? '';
}

/** A name that now means another image would be a lie: then the id is shown, as docker does. */
function imageNameOf(images: ImageStore, { imageName, imageId }: Container): string {
  const known = images.get(imageId);
  if (known === undefined) return imageId;
  const tags = images.tagsOf(imageId);
  const named = imageName.includes(':') || imageName.includes('@') ? imageName : `${imageName}:latest`;
  return tags.includes(named) || images.isId(known, imageName) || imageName.includes('@') ? imageName : imageId;
}

function graphDriverOf(layers: Layers, id: string): Record<string, string> {
  const { base, lower, upper, work, target } = layers.overlay(id);
  return {
    LowerDir: lower.map((folder) => join(base, folder)).join(':'),
    MergedDir: target,
    UpperDir: upper,
    WorkDir: work,
  };
}
