import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { measure } from '../../lib/measures.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { RegistryError } from '../../registry/errors.ts';
import { Repository } from '../../registry/repository.ts';
import type { Platform } from '../configuration/platform.ts';
import { familiarName, familiarReference, hostAndPath, refuseAmbiguous, type Reference } from '../names/reference.ts';
import type { Report } from '../progress/progress.ts';
import { pullImage, type Needs as NeedsOfImage } from './pull-image.ts';

type Needs = NeedsOfImage & Pick<Engine, 'config' | 'events'>;

type Request = {
  /** Without tag and digest: all tags. */
  reference: Reference;
  credentials: Credentials;
  report: Report;
  signal: AbortSignal;
  /** Default: this machine's. */
  platform?: Platform | undefined;
};

/** Pulls an image, or all tags of a repository. It ends with its client, and then leaves nothing. */
export async function pullImages(
  engine: Needs,
  { reference, credentials, report, signal, platform }: Request,
): Promise<void> {
  const measured = measure('image', 'pull');
  const { host, path } = hostAndPath(reference.repository);
  if (path === 'library/scratch' && host === 'docker.io') {
    throw new EngineError('invalid', "'scratch' is a reserved name");
  }
  refuseAmbiguous(reference);
  try {
    const isNew = await withRegistry(engine, { host, credentials, useMirrors: true, signal }, async (session) => {
      const repository = new Repository(session, path);
      const references = isWhole(reference) ? await allTags(repository, reference, signal) : [reference];
      let isAnyNew = false;
      for (const each of references) {
        if (await pullImage(engine, repository, each, { report, signal, platform })) isAnyNew = true;
      }
      return isAnyNew;
    });
    const name = familiarReference(reference);
    report({ status: `Status: ${isNew ? 'Downloaded newer image' : 'Image is up to date'} for ${name}` });
    tell(engine, reference);
    measured();
  } catch (error) {
    throw explainRegistryError(error, reference);
  }
}

function isWhole({ tag, digest }: Reference): boolean {
  return tag === undefined && digest === undefined;
}

async function allTags(
  repository: Repository,
  { repository: name }: Reference,
  signal: AbortSignal,
): Promise<Reference[]> {
  const tags = await repository.tags(signal);
  return tags.map((tag) => ({ repository: name, tag }));
}

/** The event is about the name, as in dockerd. */
function tell(engine: Needs, reference: Reference): void {
  const image = isWhole(reference)
    ? engine.images.named({ ...reference, tag: 'latest' })
    : engine.images.named(reference);
  const attributes = { ...image?.config.Labels, name: familiarName(reference.repository) };
  engine.events.emit('image', 'pull', familiarReference(reference), attributes);
}

/** A missing image is 404, with the words that clients look for. */
export function explainRegistryError(error: unknown, reference: Reference): unknown {
  if (!(error instanceof RegistryError)) return error;
  const name = familiarName(reference.repository);
  const texts: ReadonlyMap<string, string> = new Map(
    Object.entries({
      DENIED: `pull access denied for ${name}, repository does not exist or may require 'docker login'`,
      MANIFEST_UNKNOWN: `manifest for ${familiarReference(reference)} not found`,
      NAME_UNKNOWN: `repository ${name} not found`,
    }),
  );
  const text = texts.get(error.code);
  return text === undefined ? error : new EngineError('notFound', `${text}: ${error.message}`, { cause: error });
}
