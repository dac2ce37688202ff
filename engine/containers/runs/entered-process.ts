import type { Engine } from '../../engine.ts';
import { rootSeenBy } from '../../oci/root-files.ts';
import { ensureProfile } from '../../oci/security/apparmor.ts';
import { hasHome, ociProcess } from '../../oci/spec.ts';
import { resolveUser } from '../../oci/user.ts';
import { linkEnvironment } from '../links/links.ts';
import type { Container } from '../store.ts';
import { environmentOf, processOf } from './preparation/process.ts';

export type EnteredNeeds = Pick<Engine, 'config' | 'containers' | 'layers' | 'networks'>;

/** A process that enters a running container: that of an exec, or of a health check. */
type Wanted = Readonly<{
  command: readonly string[];
  /** As a client writes it; empty for the root user. */
  user: string;
  tty: boolean;
  size?: { width: number; height: number };
  privileged: boolean;
  /** Added to the container's. */
  env: readonly string[];
  /** Empty for the container's. */
  workingDir: string;
}>;

/**
 * The process for the OCI runtime: the container's environment, user, limits and rights, unless it has its own.
 *
 * Throws `invalid` for an unknown user.
 */
export async function enteredProcess(
  engine: EnteredNeeds,
  container: Container,
  shimPid: number,
  { command, user: ofUser, tty, size, privileged, env: ownEnv, workingDir }: Wanted,
): Promise<object> {
  const { hostConfig, appArmorProfile = '' } = container;
  await ensureProfile(appArmorProfile);
  const env = merged(environmentOf(container, linkEnvironment(engine, container), tty), ownEnv);
  const written = { user: ofUser, groupAdd: hostConfig.GroupAdd ?? [] };
  const root = rootSeenBy(shimPid, engine.layers.overlay(container.id));
  const user = await resolveUser(written, root, { needsHome: !hasHome(env) });
  const inherited = processOf(container, user, engine.config.defaultUlimits);
  const described = {
    ...inherited,
    terminal: tty,
    size,
    capabilities: { ...inherited.capabilities, privileged: privileged || hostConfig.Privileged },
    args: command,
    env,
    cwd: workingDir || inherited.cwd,
  };
  return ociProcess(described, 'exec');
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
