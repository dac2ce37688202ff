import type { Steps } from '../http/versions/steps.ts';
import type { CreateDefaults } from './create.ts';
import type { ConnectBody, CreateNetworkBody, Endpoints, NetworkWire } from './schema.ts';

type CreateRequest = CreateNetworkBody & CreateDefaults;

/** Newest first; each applies to requests of older versions. */
export const createSteps: Steps<CreateRequest> = [
  { below: '1.48', request: ({ EnableIPv4: _later, ...body }) => body },
  { below: '1.44', request: (body) => ({ ...body, allowsDuplicates: body.CheckDuplicate !== true }) },
  { below: '1.25', request: (body) => ({ ...body, needsSixSubnet: true }) },
];

export const inspectSteps: Steps<unknown, NetworkWire> = [
  { below: '1.52', response: ({ Status: _later, ...network }) => network },
  { below: '1.48', response: withoutIPv4Flag },
];

export const listSteps: Steps<unknown, NetworkWire[]> = [
  { below: '1.48', response: (networks) => networks.map(withoutIPv4Flag) },
];

function withoutIPv4Flag({ EnableIPv4: _later, ...network }: NetworkWire): NetworkWire {
  return network as NetworkWire;
}

export const connectSteps: Steps<ConnectBody> = [{ below: '1.54', request: withoutHardwareAddress }];

/** Older clients send back the hardware address that an inspect has shown. */
function withoutHardwareAddress({ EndpointConfig, ...body }: ConnectBody): ConnectBody {
  if (EndpointConfig == null) return body;
  const { MacAddress: _shown, ...settings } = EndpointConfig;
  return { ...body, EndpointConfig: settings };
}

/** Below 1.45: all names of the container but its own are aliases. */
export function withNamesAsAliases(endpoints: Endpoints): Endpoints {
  const changed = Object.entries(endpoints).map(([network, endpoint]) => {
    const { Aliases, DNSNames } = endpoint;
    const names = [...new Set([...(Aliases ?? []), ...(DNSNames ?? []).slice(1)])];
    return [network, { ...endpoint, Aliases: names.length === 0 ? null : names }] as const;
  });
  return Object.fromEntries(changed);
}

/** Below 1.44: endpoints have neither names nor a priority. */
export function withoutNames(endpoints: Endpoints): Endpoints {
  const changed = Object.entries(endpoints).map(([network, endpoint]) => {
    const { DNSNames: _names, GwPriority: _priority, ...older } = endpoint;
    return [network, older as typeof endpoint] as const;
  });
  return Object.fromEntries(changed);
}
