import type { Engine } from '../../engine.ts';
import type { Platform } from '../../images/configuration/platform.ts';
import type { Image } from '../../images/store.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { runConfigOf } from '../../records/run-config.ts';
import { INLINE_FIELD } from '../caches/cache-config.ts';

type Needs = Pick<Engine, 'images'>;
type Json = Readonly<Record<string, unknown>>;
type StepImage = Readonly<{
  architecture: string;
  variant?: string;
  os: string;
  author?: string;
  created: string;
  rootfs: Json;
  history?: readonly Json[];
}>;

type Finished = Readonly<{
  historyLines: readonly (string | undefined)[];
  /** A mark of BuildKit for images with a command. */
  argsEscaped: boolean;
  /** Undefined: that of the base image. */
  platform: Platform | undefined;
  /** Time of all steps of the build, for images that are the same each time. */
  epoch: Temporal.Instant | undefined;
  /** The cache within the image, if the client wants one. */
  inline: string | undefined;
}>;

const COMMENT = 'buildkit.dockerfile.v0';

/**
 * Stores the result of a build as BuildKit writes it: without the containers of the steps, and with its own lines in the
 * history. It has the same id for the same steps.
 */
export function finishedImage(
  engine: Needs,
  step: Image,
  { historyLines, argsEscaped, platform, epoch, inline }: Finished,
): Image {
  const own = JSON.parse(engine.images.jsonOf(step.id)) as StepImage;
  const { author, created, rootfs, history = [] } = own;
  const { os, architecture, variant = '' } = platform ?? own;
  const first = history.length - historyLines.length;
  const lines = historyLines.flatMap((text, index) => {
    const { created, empty_layer: isEmpty } = history[first + index]!;
    const at = epoch?.toString() ?? created;
    return text === undefined
      ? []
      : [{ created: at, created_by: text, comment: COMMENT, ...(isEmpty === true && { empty_layer: true }) }];
  });
  const json = JSON.stringify({
    ...(author !== undefined && { author }),
    architecture,
    config: { ...settingsOf(step), ...(argsEscaped && { ArgsEscaped: true }) },
    created: epoch?.toString() ?? created,
    history: [...history.slice(0, first), ...lines],
    ...(inline !== undefined && { [INLINE_FIELD]: inline }),
    os,
    rootfs,
    ...(variant !== '' && { variant }),
  });
  return engine.images.insert(sha256(json), json, ({ id }) => engine.images.setBuiltHere(id, step.id));
}

/** Settings of an image as BuildKit writes them; those of the containers of steps are left out. */
const SETTINGS = [
  'User',
  'ExposedPorts',
  'Env',
  'Entrypoint',
  'Cmd',
  'Volumes',
  'WorkingDir',
  'Labels',
  'StopSignal',
  'Healthcheck',
  'OnBuild',
  'Shell',
] as const;

function settingsOf({ wireConfig }: Image): Json {
  const config = runConfigOf(wireConfig);
  return Object.fromEntries(
    SETTINGS.map((name) => [name, config[name]] as const).filter(([, value]) => !isEmpty(value)),
  );
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
