import type { Engine } from '../engine.ts';
import type { Platform } from '../images/configuration/platform.ts';
import { hostAndPath, parseReference, withDefaultTag } from '../images/names/reference.ts';
import type { Image, ImageStore } from '../images/store.ts';
import { pullImages } from '../images/transfers/pull.ts';
import { EngineError } from '../lib/errors.ts';
import { ANONYMOUS } from '../registry/auth/credentials.ts';
import type { CredentialsByHost } from './options.ts';
import type { StageOutput } from './output.ts';

type How = Readonly<{
  /** Even if it exists here. */
  pulls: boolean;
  credentials: CredentialsByHost;
  output: Pick<StageOutput, 'report'>;
  signal: AbortSignal;
  platform: Platform | undefined;
}>;

/** The image of a FROM or of a `--from`: pulled if it is missing, or of another platform. */
export async function baseImage(engine: Engine, name: string, how: How): Promise<Image> {
  const { pulls, credentials, output, signal, platform } = how;
  if (!pulls) {
    const local = localImage(engine.images, name, platform);
    if (local !== undefined) return local;
  }
  const reference = withDefaultTag(parseReference(name));
  const { host } = hostAndPath(reference.repository);
  await pullImages(engine, {
    reference,
    credentials: (await credentials.get(host)) ?? ANONYMOUS,
    report: output.report,
    signal,
    platform,
  });
  return engine.images.find(name, platform);
}

function localImage(images: ImageStore, name: string, platform: Platform | undefined): Image | undefined {
  try {
    return images.find(name, platform);
  } catch (error) {
    if (error instanceof EngineError && error.kind === 'notFound') return undefined;
    throw error;
  }
}
