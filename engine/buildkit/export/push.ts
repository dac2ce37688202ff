import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import { hostAndPath, type Reference } from '../../images/names/reference.ts';
import type { Progress } from '../../images/progress/progress.ts';
import { pushImages } from '../../images/transfers/push.ts';
import { EngineError } from '../../lib/errors.ts';
import { ANONYMOUS } from '../../registry/auth/credentials.ts';
import { DOCKER_MANIFEST } from '../../registry/manifests.ts';
import type { Vertex } from '../progress/vertex.ts';

type How = Readonly<{ credentials: CredentialsByHost; vertex: Vertex; signal: AbortSignal }>;

/** Pushes names of the engine's store; returns the values of the last one for the client's metadata. */
export async function pushNames(
  engine: Engine,
  references: readonly Reference[],
  { credentials, vertex, signal }: How,
): Promise<ReadonlyMap<string, string>> {
  if (references.length === 0) throw new EngineError('invalid', 'a name is needed for a push to a registry');
  let values = new Map<string, string>();
  for (const reference of references) {
    const { host } = hostAndPath(reference.repository);
    let pushed: Readonly<{ Digest?: string; Size?: number }> = {};
    const report = (line: Progress): void => {
      const { aux } = line as { aux?: typeof pushed };
      if (aux?.Digest !== undefined) pushed = aux;
      vertex.report(line);
    };
    vertex.status('pushing layers', 0, 0, false);
    await pushImages(engine, { reference, credentials: (await credentials.get(host)) ?? ANONYMOUS, report, signal });
    vertex.status('pushing layers', 0, 0, true);
    const { Digest: digest = '', Size: size = 0 } = pushed;
    vertex.status(`pushing manifest for ${reference.repository}:${reference.tag}@${digest}`, 0, 0, true);
    const descriptor = { mediaType: DOCKER_MANIFEST, digest, size };
    values = new Map([
      ['containerimage.digest', digest],
      ['containerimage.descriptor', Buffer.from(JSON.stringify(descriptor)).toString('base64')],
    ]);
  }
  return values;
}
