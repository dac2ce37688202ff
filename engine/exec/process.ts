import type { Config } from '../config/daemon-config.ts';
import { linkEnvironment } from '../containers/links/links.ts';
import { environmentOf, processOf } from '../containers/runs/process.ts';
import type { Container, ContainerStore } from '../containers/store.ts';
import type { Layers } from '../layers/layers.ts';
import type { Networks } from '../networks/networks.ts';
import { rootSeenBy } from '../oci/root-files.ts';
import { hasHome, ociProcess } from '../oci/spec.ts';
import { resolveUser } from '../oci/user.ts';
import type { Exec } from './store.ts';

type Needs = { config: Config; containers: ContainerStore; layers: Layers; networks: Networks };

/**
 * The process for the OCI runtime: the container's environment, user, limits and rights, unless the exec has its own.
 *
 * Throws `invalid` for a user that the container does not know.
 */
export async function execProcess(engine: Needs, exec: Exec, container: Container, shimPid: number): Promise<object> {
  const { hostConfig } = container;
  const env = merged(environmentOf(container, linkEnvironment(engine, container), exec.tty), exec.env);
  const written = { user: exec.user, groupAdd: hostConfig.GroupAdd ?? [] };
  const root = rootSeenBy(shimPid, engine.layers.overlay(container.id));
  const user = await resolveUser(written, root, { needsHome: !hasHome(env) });
  const inherited = processOf(container, user, engine.config.defaultUlimits);
  return ociProcess({
    ...inherited,
    terminal: exec.tty,
    size: exec.size,
    capabilities: { ...inherited.capabilities, privileged: exec.privileged || hostConfig.Privileged },
    args: exec.command,
    env,
    cwd: exec.workingDir || inherited.cwd,
  });
}

/** A name without `=` removes the container's variable. */
function merged(environment: readonly string[], own: readonly string[]): string[] {
  const named = new Map(environment.map((variable) => [nameOf(variable), variable]));
  for (const variable of own) {
    if (variable.includes('=')) named.set(nameOf(variable), variable);
    else named.delete(variable);
  }
  return [...named.values()];
}

function nameOf(variable: string): string {
  return variable.split('=', 1)[0]!;
}
