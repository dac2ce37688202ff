import { runConfigOf, type RunConfig } from '../../records/run-config.ts';

type Maps = Readonly<Record<string, object>>;

/** The client's settings, completed from the container's, as in docker. */
export function mergeConfig(asked: RunConfig, own: RunConfig): RunConfig {
  const hasEntrypoint = (asked.Entrypoint ?? []).length > 0;
  const hasCommand = (asked.Cmd ?? []).length > 0;
  return runConfigOf({
    ...asked,
    User: asked.User || own.User,
    ExposedPorts: mergedMaps(asked.ExposedPorts ?? null, own.ExposedPorts ?? null),
    Env: mergedEnvironment(asked.Env ?? [], own.Env),
    Labels: { ...own.Labels, ...asked.Labels },
    Cmd: hasEntrypoint || hasCommand ? asked.Cmd : own.Cmd,
    Entrypoint: asked.Entrypoint ?? own.Entrypoint,
    ...mergedCheck(asked, own),
    WorkingDir: asked.WorkingDir || own.WorkingDir,
    Volumes: mergedMaps(asked.Volumes, own.Volumes),
    StopSignal: asked.StopSignal || own.StopSignal,
  });
}

function mergedMaps(asked: Maps | null, own: Maps | null): Maps | null {
  return Object.keys(asked ?? {}).length === 0 ? own : { ...asked, ...own };
}

function mergedEnvironment(asked: readonly string[], own: readonly string[] | null): readonly string[] | null {
  if (asked.length === 0) return own;
  const names = new Set(asked.map(nameOf));
  return [...asked, ...(own ?? []).filter((variable) => !names.has(nameOf(variable)))];
}

function nameOf(variable: string): string {
  return variable.split('=', 1)[0]!;
}

/** Zero and an empty test are taken from the container. */
function mergedCheck({ Healthcheck: asked }: RunConfig, { Healthcheck: own }: RunConfig): Partial<RunConfig> {
  if (asked === undefined) return own === undefined ? {} : { Healthcheck: own };
  const given = Object.entries(asked).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : value !== 0));
  return { Healthcheck: { ...own, ...Object.fromEntries(given) } };
}
