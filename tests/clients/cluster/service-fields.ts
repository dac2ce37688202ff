/** A service of one task; the task is compared once it is in this state. */
export type FieldRow = Readonly<{
  what: string;
  state: 'running' | 'complete' | 'failed' | 'rejected' | 'pending';
  container?: object;
  task?: object;
  service?: object;
  /** A deliberate difference: these parts are not compared. */
  chosen?: Readonly<{ reason: string; without: readonly ('error' | 'container')[] }>;
}>;

const ours = { reason: 'our own words', without: ['error'] } as const;
const healthy = { Test: ['CMD', 'true'], Interval: 1e9, Timeout: 60e9, Retries: 4, StartPeriod: 5e9 };

function reserved(resource: object): object {
  return { Resources: { Reservations: { GenericResources: [resource] } } };
}

/** Fields of services since version 1.25, as the task and its container show them. */
export const FIELDS: readonly FieldRow[] = [
  { what: 'nothing', state: 'running' },
  { what: 'Init', state: 'running', container: { Init: true } },
  { what: 'Init: false', state: 'running', container: { Init: false } },
  { what: 'Hostname', state: 'running', container: { Hostname: '{{.Service.Name}}-{{.Task.Slot}}' } },
  { what: 'Hostname in upper case', state: 'running', container: { Hostname: 'UPPER.example.org' } },
  {
    what: 'templates',
    state: 'running',
    container: {
      Env: ['A={{.Service.Name}} {{.Task.Slot}} {{.Node.Hostname}}', 'B={{.Node.Platform.OS}}', 'C'],
      Mounts: [
        {
          Type: 'volume',
          Source: 'v-{{.Service.Name}}-{{.Task.Slot}}',
          Target: '/v{{.Task.Slot}}',
          VolumeOptions: { Labels: { slot: '{{.Task.Slot}}' } },
        },
      ],
    },
    service: { Labels: { x: 'y' } },
  },
  { what: 'Sysctls', state: 'running', container: { Sysctls: { 'net.ipv4.ip_forward': '0' } } },
  { what: 'Hosts', state: 'running', container: { Hosts: ['1.2.3.4 one two', '5.6.7.8 three'] } },
  { what: 'Hosts without an address', state: 'rejected', container: { Hosts: ['a b'] } },
  { what: 'Hosts without a name', state: 'running', container: { Hosts: ['9.9.9.9', ''] } },
  {
    what: 'DNSConfig',
    state: 'running',
    container: { DNSConfig: { Nameservers: ['9.9.9.9'], Search: ['example.org'], Options: ['ndots:3'] } },
  },
  { what: 'DNSConfig: {}', state: 'running', container: { DNSConfig: {} } },
  { what: 'Healthcheck', state: 'running', container: { Healthcheck: healthy } },
  { what: 'Healthcheck: {}', state: 'running', container: { Healthcheck: {} } },
  { what: 'Healthcheck: NONE', state: 'running', container: { Healthcheck: { Test: ['NONE'] } } },
  {
    what: 'Healthcheck that fails',
    state: 'failed',
    container: {
      Healthcheck: { Test: ['CMD', 'false'], Interval: 1e8, Timeout: 60e9, Retries: 1 },
      Command: ['sh', '-c', "trap 'exit 3' TERM; while :; do sleep 0.1; done"],
      StopGracePeriod: 600e9,
    },
    chosen: ours,
  },
  { what: 'StopSignal', state: 'running', container: { StopSignal: 'SIGINT' } },
  { what: 'StopSignal that does not exist', state: 'rejected', container: { StopSignal: 'NOPE' } },
  { what: 'ReadOnly', state: 'failed', container: { ReadOnly: true, Command: ['touch', '/x'] } },
  { what: 'TTY and OpenStdin', state: 'running', container: { TTY: true, OpenStdin: true, Command: ['cat'] } },
  { what: 'Groups', state: 'running', container: { Groups: ['10', '0'] } },
  {
    what: 'CapabilityAdd and CapabilityDrop',
    state: 'running',
    container: { CapabilityAdd: ['NET_ADMIN'], CapabilityDrop: ['CAP_CHOWN'] },
  },
  { what: 'an unknown capability', state: 'rejected', container: { CapabilityAdd: ['NOPE'] } },
  { what: 'Ulimits', state: 'running', container: { Ulimits: [{ Name: 'nofile', Soft: 100, Hard: 200 }] } },
  { what: 'Isolation', state: 'rejected', container: { Isolation: 'hyperv' }, chosen: ours },
  { what: 'an unknown isolation', state: 'running', container: { Isolation: 'odd' } },
  { what: 'Privileges: {}', state: 'running', container: { Privileges: {} } },
  {
    what: 'SELinuxContext',
    state: 'running',
    container: { Privileges: { SELinuxContext: { User: 'u', Role: 'r', Type: 't', Level: 'l' } } },
  },
  {
    what: 'SELinuxContext disabled',
    state: 'running',
    container: { Privileges: { SELinuxContext: { Disable: true } } },
  },
  {
    what: 'tmpfs',
    state: 'running',
    container: { Mounts: [{ Type: 'tmpfs', Target: '/t', TmpfsOptions: { SizeBytes: 1048576, Mode: 448 } }] },
  },
  {
    what: 'tmpfs with a source',
    state: 'rejected',
    container: { Mounts: [{ Type: 'tmpfs', Target: '/t', Source: '/x' }] },
    chosen: ours,
  },
  {
    what: 'bind',
    state: 'running',
    container: { Mounts: [{ Type: 'bind', Source: '/etc', Target: '/b', BindOptions: { NonRecursive: true } }] },
  },
  { what: 'Pids', state: 'running', task: { Resources: { Limits: { Pids: 50 } } } },
  { what: 'Pids below 0', state: 'running', task: { Resources: { Limits: { Pids: -1 } } } },
  {
    what: 'GenericResources that no node has',
    state: 'pending',
    task: reserved({ DiscreteResourceSpec: { Kind: 'FPGA', Value: 2 } }),
  },
  {
    what: 'GenericResources: an amount',
    state: 'running',
    task: reserved({ DiscreteResourceSpec: { Kind: 'SSD', Value: 3 } }),
    container: { Env: ['A=b'] },
  },
  {
    what: 'GenericResources: one with a name',
    state: 'running',
    task: reserved({ DiscreteResourceSpec: { Kind: 'GPU', Value: 1 } }),
  },
  {
    what: 'GenericResources: more than the node has left',
    state: 'pending',
    task: reserved({ DiscreteResourceSpec: { Kind: 'SSD', Value: 6 } }),
  },
  {
    what: 'GenericResources: none of a kind',
    state: 'running',
    task: reserved({ DiscreteResourceSpec: { Kind: 'SSD', Value: 0 } }),
  },
  {
    what: 'Preferences',
    state: 'running',
    task: { Placement: { Preferences: [{ Spread: { SpreadDescriptor: 'node.labels.rack' } }] } },
  },
  { what: 'MaxReplicas', state: 'running', task: { Placement: { MaxReplicas: 1 } } },
  { what: 'Platforms', state: 'running', task: { Placement: { Platforms: [{ Architecture: 'amd64', OS: 'linux' }] } } },
  {
    what: 'Platforms of other nodes',
    state: 'pending',
    task: { Placement: { Platforms: [{ Architecture: 's390x' }] } },
  },
  { what: 'ForceUpdate', state: 'running', task: { ForceUpdate: 3, Runtime: 'container' } },
];
