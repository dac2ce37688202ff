import { resolveUser } from '../containers/container-user.ts';
import { linkEnvironment } from '../containers/links.ts';
import { environmentOf, grantedCapabilities, processFields } from '../containers/oci-spec.ts';
import type { Container, ContainerStore } from '../containers/store.ts';
import type { Layers } from '../layers/layers.ts';
import type { Networks } from '../networks/networks.ts';
import type { Exec } from './store.ts';

type Needs = { containers: ContainerStore; layers: Layers; networks: Networks };

/**
 * The process as the OCI runtime wants it: the container's environment, user and rights, unless the exec has its own.
 *
 * Throws `invalid` for a user that the container does not know.
 */
export function execProcess(engine: Needs, exec: Exec, container: Container): object {
  const { config, hostConfig } = container;
  const user = resolveUser(exec.user || config.User, hostConfig.GroupAdd ?? [], engine.layers.overlay(container.id));
  const capabilities = grantedCapabilities(hostConfig, exec.privileged || hostConfig.Privileged);
  return {
    ...processFields(container, user, capabilities),
    terminal: exec.tty,
    ...(exec.tty && exec.size !== undefined && { consoleSize: exec.size }),
    args: exec.command,
    env: merged(environmentOf(container, linkEnvironment(engine, container), exec.tty), exec.env),
    cwd: exec.workingDir || config.WorkingDir || '/',
  };
}

/** A name alone takes the container's variable away. */
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
