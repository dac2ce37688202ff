import type { NetworkDriver } from '../drivers/driver.ts';
import type { PluginAddresses } from './addresses.ts';

/** A driver whose networks have their addresses from a plugin. */
export function withPluginAddresses(addresses: PluginAddresses, driver: NetworkDriver): NetworkDriver {
  const { create, joinInto } = driver;
  return {
    ...driver,
    ...(create && { create: async (network) => await create(await addresses.allocate(network)) }),
    join: async (network, wanted) => await driver.join(network, await addresses.request(network, wanted)),
    ...(joinInto && {
      joinInto: async (network, wanted, within) =>
        await joinInto(network, await addresses.request(network, wanted), within),
    }),
    cleanupCalls: {
      network: (network) => [...addresses.cleanupOfNetwork(network), ...(driver.cleanupCalls?.network(network) ?? [])],
      endpoint: (network, left, isGateway) => [
        ...(driver.cleanupCalls?.endpoint(network, left, isGateway) ?? []),
        ...addresses.cleanupOfEndpoint(network, left),
      ],
    },
  };
}
