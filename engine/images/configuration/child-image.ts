import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import type { Layer } from '../../layers/records.ts';
import { runConfigOf, type RunConfig } from '../../records/run-config.ts';
import { VERSION } from '../../version.ts';
import type { Image } from '../store.ts';
import { goArchitecture } from './architecture.ts';

type Needs = Pick<Engine, 'images' | 'clock'>;

type Child = Readonly<{
  /** Undefined for `FROM scratch`. */
  parent: Image | undefined;
  /** Undefined: no files have changed. */
  layer: Layer | undefined;
  config: RunConfig;
  /** The settings of its container; the history shows their command. */
  containerConfig: RunConfig;
  containerId?: string;
  author: string;
  comment?: string;
  /** The line of the history, if another image has it already. */
  step?: Readonly<Record<string, unknown>>;
}>;

type ParentJson = Partial<{
  architecture: string;
  variant: string;
  'os.version': string;
  'os.features': string[];
  rootfs: { diff_ids?: string[] | null };
  history: unknown[] | null;
}>;

/** The configuration of an image on top of another one, byte for byte as it is stored; its digest is the id. */
export function childImage(engine: Needs, child: Child): { id: string; json: string } {
  const { parent, layer, author, comment, containerId } = child;
  const before = parent === undefined ? {} : (JSON.parse(engine.images.jsonOf(parent.id)) as ParentJson);
  const created = typeof child.step?.created === 'string' ? child.step.created : engine.clock.now().toString();
  const entry = child.step ?? {
    created,
    ...omitEmpty({ author, created_by: (child.containerConfig.Cmd ?? []).join(' '), comment }),
    ...(layer === undefined && { empty_layer: true }),
  };
  const diffIds = [...(before.rootfs?.diff_ids ?? []), ...(layer === undefined ? [] : [layer.diffId])];
  // In the order of the names, as dockerd writes them.
  const json = JSON.stringify({
    architecture: before.architecture || goArchitecture(),
    ...omitEmpty({ author, comment }),
    config: runConfigOf(child.config),
    ...omitEmpty({ container: containerId }),
    container_config: runConfigOf(child.containerConfig),
    created,
    docker_version: VERSION,
    history: [...(before.history ?? []), entry],
    os: 'linux',
    ...omitEmpty({ 'os.features': before['os.features'], 'os.version': before['os.version'] }),
    rootfs: { type: 'layers', ...(diffIds.length > 0 && { diff_ids: diffIds }) },
    ...omitEmpty({ variant: before.variant }),
  });
  return { id: sha256(json), json };
}

function omitEmpty(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''));
}
