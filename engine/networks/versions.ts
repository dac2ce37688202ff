import type { Steps } from '../http/versions/steps.ts';
import type { ConnectBody, Endpoints } from './schema.ts';

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
