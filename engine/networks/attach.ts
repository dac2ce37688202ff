import type { Events } from '../events/events.ts';
import type { Networks } from './networks.ts';
import type { PortBindings, PublishedPort } from './ports.ts';

/** A container's place in a network, as it is stored while the container runs. */
export type Attachment = Readonly<{
  containerId: string;
  networkId: string;
  networkName: string;
  endpointId: string;
  sandboxId: string;
  /** Empty in the networks `host` and `none`, as are gateway and MAC address; the prefix length is 0 there. */
  ipAddress: string;
  prefixLength: number;
  gateway: string;
  macAddress: string;
  ports: readonly PublishedPort[];
}>;

export type AttachRequest = Readonly<{
  containerId: string;
  /** Without the leading slash; error messages name it. */
  containerName: string;
  /** Default: made from the address. */
  mac?: string;
  /** Default: the lowest free address. */
  ip?: string;
  /** Keys such as `80/tcp`; a missing or empty HostPort takes a free one of the kernel's ephemeral range. */
  portBindings: PortBindings;
  /** Publishes every port of `exposed` that has no binding. */
  publishAll: boolean;
  /** Keys such as `80/tcp`. */
  exposed: readonly string[];
}>;

/** `netns` is an open file descriptor, closed by the caller as soon as the shim has inherited it. */
export type Leased = { netns: number; attachment: Attachment };

export type NetworkNeeds = { networks: Networks; events: Events };
