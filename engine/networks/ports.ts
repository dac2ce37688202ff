export type Protocol = 'tcp' | 'udp';

export type PublishedPort = Readonly<{ containerPort: number; protocol: Protocol; hostIp: string; hostPort: number }>;

/** HostConfig.PortBindings as it comes on the wire: ranges such as `8000-8010`, empty strings and nulls included. */
export type PortBindings = Readonly<
  Record<string, readonly { HostIp?: string | null; HostPort?: string | null }[] | null>
>;
