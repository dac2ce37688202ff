import type { CreateBody } from '@gantry/client/containers.ts';

import { UsageError } from '../exit-codes.ts';

type HostConfig = NonNullable<CreateBody['HostConfig']>;
type Endpoint = NonNullable<NonNullable<NonNullable<CreateBody['NetworkingConfig']>['EndpointsConfig']>[string]>;

/** The parts of a create body while the flags are applied to them, one after another. */
export type CreateRequest = { config: CreateBody; host: HostConfig; endpoint: Endpoint };

/** The values of the command line besides the flags. */
export type Purpose = {
  image: string;
  command: readonly string[];
  /** The attached streams; the output of a detached container goes only to the log. */
  attached: ReadonlySet<'stdin' | 'stdout' | 'stderr'>;
};

export function emptyRequest({ image, command, attached }: Purpose): CreateRequest {
  return {
    config: {
      Image: image,
      ...(command.length > 0 && { Cmd: [...command] }),
      AttachStdin: attached.has('stdin'),
      AttachStdout: attached.has('stdout'),
      AttachStderr: attached.has('stderr'),
    },
    host: { NetworkMode: 'default' },
    endpoint: {},
  };
}

export function bodyOf({ config, host, endpoint }: CreateRequest): CreateBody {
  if (config.OpenStdin === true && config.AttachStdin === true) config.StdinOnce = true;
  const mode = host.NetworkMode ?? 'default';
  if (Object.keys(endpoint).length === 0) return { ...config, HostConfig: host };
  if (/^(none|host|container:.*)$/.test(mode)) {
    throw new UsageError(`addresses and aliases of a network cannot be used with --network ${mode}`);
  }
  return { ...config, HostConfig: host, NetworkingConfig: { EndpointsConfig: { [mode]: endpoint } } };
}
