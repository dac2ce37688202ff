import type { Networks } from '../networks.ts';
import type { WantedEndpoint } from './sandbox.ts';

/** Networks of the cluster have to let a container in; what is disposed of lets it out again. */
export async function attachAll(
  networks: Networks,
  wanted: readonly WantedEndpoint[],
  name: string,
): Promise<DisposableStack> {
  using attached = new DisposableStack();
  if (networks.overlays.attachments.isInCluster) {
    for (const one of wanted) attached.use(await attach(networks, one, name));
  }
  return attached.move();
}

/** Undefined where that needs nothing. */
async function attach(
  networks: Networks,
  { ref, aliases = [], ip }: WantedEndpoint,
  name: string,
): Promise<Disposable | undefined> {
  return await networks.overlays.attach({ network: ref, ref, name, aliases, ...(ip && { ip }) });
}
