import type { Engine } from '../../engine.ts';
import { hostAndPath, parseReference } from '../../images/names/reference.ts';
import type { Report } from '../../images/progress/progress.ts';
import { explainRegistryError } from '../../images/transfers/pull.ts';
import { LayerLines, retrying } from '../../images/transfers/transfer-lines.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { sha256 } from '../../registry/digest.ts';
import {
  DOCKER_MANIFEST,
  DOCKER_LAYER,
  PLUGIN_CONFIG,
  writeManifest,
  type Descriptor,
} from '../../registry/manifests.ts';
import { GrowingFile } from '../../registry/upload/growing-file.ts';
import { PushTarget } from '../../registry/upload/push-target.ts';
import { layerFile, pluginFolder } from '../places.ts';
import type { InstalledPlugin } from '../store.ts';

type Needs = Pick<Engine, 'clock' | 'config' | 'db' | 'events' | 'installedPlugins' | 'log'>;

type Push = Readonly<{ credentials: Credentials; report: Report; signal: AbortSignal }>;

/** Pushes a plugin under its name. Throws `notFound`, and `failed` with the registry's words. */
export async function pushPlugin(engine: Needs, ref: string, { credentials, report, signal }: Push): Promise<void> {
  const plugin = engine.installedPlugins.find(ref);
  const { layers } = plugin;
  if (layers === undefined)
    throw new EngineError('failed', `the layers of plugin ${plugin.name} were not kept: install it again to push it`);
  const reference = parseReference(plugin.name);
  if (reference.tag === undefined) throw new EngineError('invalid', 'cannot push a digest reference');
  const { host, path } = hostAndPath(reference.repository);
  report({ status: `The push refers to repository [${reference.repository}]` });
  try {
    await withRegistry(engine, { host, credentials, useMirrors: false, signal }, async (session) => {
      const target = new PushTarget(session, path);
      for (const layer of layers) await pushLayer(engine, plugin, layer, { target, report, signal });
      const config = configDescriptor(plugin.config);
      if ((await target.sizeOf(config.digest, { signal })) === undefined)
        await target.put(Buffer.from(plugin.config), config.digest, signal);
      const described = layers.map(({ digest, sizeBytes: size }) => ({ mediaType: DOCKER_LAYER, digest, size }));
      const manifest = writeManifest(config, described);
      await target.putManifest(reference.tag!, manifest, DOCKER_MANIFEST, signal);
      report({ status: `${reference.tag}: digest: ${sha256(manifest)} size: ${manifest.length}` });
    });
  } catch (error) {
    throw explainRegistryError(error, reference);
  }
  engine.events.emit('plugin', 'push', plugin.id, { name: plugin.name });
}

type Layer = NonNullable<InstalledPlugin['layers']>[number];

async function pushLayer(
  { clock, config }: Needs,
  { id }: InstalledPlugin,
  { digest, sizeBytes }: Layer,
  { target, report, signal }: { target: PushTarget; report: Report; signal: AbortSignal },
): Promise<void> {
  const lines = new LayerLines(report, clock, shortId(digest.slice('sha256:'.length)), sizeBytes);
  const onRetry = (seconds: number): void => lines.say(retrying(seconds));
  if ((await target.sizeOf(digest, { signal, onRetry })) !== undefined) return lines.say('Layer already exists');
  const file = new GrowingFile(layerFile(pluginFolder(config, id), digest), { digest, size: sizeBytes });
  await target.upload(file, { clock, signal, onRetry, onProgress: (bytes) => lines.bytes('Pushing', bytes) });
  lines.say('Pushed');
}

export function configDescriptor(text: string): Descriptor {
  const bytes = Buffer.from(text);
  return { mediaType: PLUGIN_CONFIG, digest: sha256(bytes), size: bytes.length };
}
