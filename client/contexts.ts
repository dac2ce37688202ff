type Environment = Readonly<Record<string, string | undefined>>;

/** The address of an engine as `docker context create` stored it. */
type ContextEndpoint = Readonly<{
  host: string;
  tls: { ca?: Buffer; cert?: Buffer; key?: Buffer; verify: boolean } | undefined;
}>;

/** The name of the context; undefined for none and `default`. */
export function contextName({ DOCKER_CONTEXT: name = '' }: Environment): string | undefined {
  return name === '' || name === 'default' ? undefined : name;
}

/** Reads the context that `DOCKER_CONTEXT` names; undefined without a context of this name. */
export function contextEndpoint(environment: Environment): ContextEndpoint | undefined {
  const name = contextName(environment);
  if (name === undefined) return undefined;
  const config = environment.DOCKER_CONFIG || `${environment.HOME ?? '/root'}/.docker`;
  const folder = process.getBuiltinModule('node:crypto').hash('sha256', name);
  const text = readIfThere(`${config}/contexts/meta/${folder}/meta.json`)?.toString();
  if (text === undefined) return undefined;
  const endpoint = endpointIn(text);
  if (endpoint === undefined) throw new Error(`context "${name}" names no docker endpoint`);
  const read = (file: string) => readIfThere(`${config}/contexts/tls/${folder}/docker/${file}`);
  const [ca, cert, key] = [read('ca.pem'), read('cert.pem'), read('key.pem')];
  const hasTls = ca !== undefined || cert !== undefined;
  return {
    host: endpoint.Host,
    tls: hasTls
      ? { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), verify: endpoint.SkipTLSVerify !== true }
      : undefined,
  };
}

/** An `import` would load all of node:fs, even where there is no context: 12 ms. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return process.getBuiltinModule('node:fs').readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function endpointIn(text: string): { Host: string; SkipTLSVerify?: boolean } | undefined {
  type Meta = { Endpoints?: { docker?: { Host?: unknown; SkipTLSVerify?: boolean } } } | null;
  const { Host, SkipTLSVerify = false } = (parse(text) as Meta)?.Endpoints?.docker ?? {};
  return typeof Host === 'string' && Host !== '' ? { Host, SkipTLSVerify } : undefined;
}

/** Undefined for anything but JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
