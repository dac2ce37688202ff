import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import type { EngineError } from '../../lib/errors.ts';
import { Draft } from '../state/draft.ts';
import { Replica } from '../state/replica.ts';
import { templateOf } from '../state/template.ts';
import { createService } from './create.ts';
import { insertDefaults } from './insert-defaults.ts';
import { presentService } from './present.ts';
import type { ServiceBody } from './schema.ts';
import { readServiceSpec } from './spec.ts';
import { updateService } from './update.ts';

const ContainerSpec = { Image: 'busybox' };
const TaskTemplate = { ContainerSpec };
const NOW = Temporal.Instant.from('2026-01-01T00:00:00Z');
const argument = (text: string): string => `rpc error: code = InvalidArgument desc = ${text}`;

/** dockerd 20.10's answers to refused bodies: all but the 500 of constraints are 400. */
const REFUSED: readonly (readonly [ServiceBody, string, EngineError['kind']?])[] = [
  [{}, 'mismatched Runtime and *Spec fields'],
  [{ TaskTemplate: {} }, 'mismatched Runtime and *Spec fields'],
  [{ TaskTemplate: { ContainerSpec: {} } }, argument('ContainerSpec: image reference must be provided')],
  [
    { TaskTemplate: { ContainerSpec: { Image: 'UPPER' } } },
    argument('ContainerSpec: "UPPER" is not a valid repository/tag'),
  ],
  [{ Name: '-bad', TaskTemplate }, argument('name must be valid as a DNS name component')],
  [{ Name: 'bad name', TaskTemplate }, argument('name must be valid as a DNS name component')],
  [{ Name: 'a.b', TaskTemplate }, argument('name must be valid as a DNS name component')],
  [{ Name: `${'a'.repeat(62)}!`, TaskTemplate }, argument('name must be valid as a DNS name component')],
  [{ Name: 'x'.repeat(64), TaskTemplate }, argument('name must be 63 characters or fewer')],
  [mounts({ Type: 'nope', Target: '/x' }), 'invalid MountType: "nope"'],
  [mounts({ Target: '/x', BindOptions: { Propagation: 'odd' } }), 'invalid MountPropagation: "odd"'],
  [
    mounts({ Target: '/x', Source: 'a' }, { Target: '/x', Source: 'b' }),
    argument('ContainerSpec: duplicate mount point: /x'),
  ],
  [template({ RestartPolicy: { Condition: 'odd' } }), 'invalid RestartCondition: "odd"'],
  [template({ RestartPolicy: { Delay: -1 } }), argument('TaskSpec: restart-delay cannot be negative')],
  [template({ RestartPolicy: { Window: -1 } }), argument('TaskSpec: restart-window cannot be negative')],
  [constraints('x'), 'rpc error: code = Unknown desc = constraint expected one operator from ==, !=', 'failed'],
  [constraints('node.role=='), "rpc error: code = Unknown desc = value '' is invalid", 'failed'],
  [{ TaskTemplate, Mode: { Replicated: {}, Global: {} } }, 'must specify only one service mode'],
  [{ TaskTemplate, UpdateConfig: { FailureAction: 'odd' } }, 'unrecognized update failure action odd'],
  [{ TaskTemplate, UpdateConfig: { Delay: -1 } }, argument('TaskSpec: update-delay cannot be negative')],
  [{ TaskTemplate, UpdateConfig: { Monitor: -1 } }, argument('TaskSpec: update-monitor cannot be negative')],
  [{ TaskTemplate, UpdateConfig: { Order: 'odd' } }, 'unrecognized update order odd'],
  [
    { TaskTemplate, UpdateConfig: { MaxFailureRatio: 1.1 } },
    argument('TaskSpec: update-maxfailureratio cannot be less than 0 or bigger than 1'),
  ],
  [{ TaskTemplate, RollbackConfig: { Delay: -1 } }, argument('TaskSpec: update-delay cannot be negative')],
  [{ TaskTemplate, RollbackConfig: { FailureAction: 'odd' } }, 'unrecognized update failure action odd'],
  [{ TaskTemplate, EndpointSpec: { Mode: 'odd' } }, 'invalid resolution mode: "odd"'],
  [
    { TaskTemplate, EndpointSpec: { Mode: 'dnsrr', Ports: [{ TargetPort: 80 }] } },
    argument("EndpointSpec: port published with ingress mode can't be used with dnsrr mode"),
  ],
  [
    { TaskTemplate, EndpointSpec: { Ports: [80, 81].map((TargetPort) => ({ TargetPort, PublishedPort: 8080 })) } },
    argument('EndpointSpec: duplicate published ports provided'),
  ],
  [template({ Resources: { Limits: { NanoCPUs: 1 } } }), argument('invalid cpu value 1e-09: Must be at least 0.001')],
  [template({ Resources: { Limits: { MemoryBytes: 1 } } }), argument('invalid memory value 1: Must be at least 4MiB')],
  [
    template({ Resources: { Reservations: { NanoCPUs: -1 } } }),
    argument('invalid cpu value -1e-09: Must be at least 0.001'),
  ],
];

const health = (Healthcheck: object): ServiceBody => container({ Healthcheck });

/** These are refused by this engine alone, or as by dockerd. */
const LATER: typeof REFUSED = [
  [health({ Interval: 5 }), argument('ContainerSpec: Interval in HealthConfig cannot be less than 1ms')],
  [health({ StartPeriod: -1 }), argument('ContainerSpec: StartPeriod in HealthConfig cannot be less than 1ms')],
  [health({ Retries: -1 }), argument('ContainerSpec: Retries in HealthConfig cannot be negative')],
  [template({ Runtime: 'odd' }), 'unsupported runtime'],
  [{ TaskTemplate, Mode: { GlobalJob: {}, Global: {} } }, 'must specify only one service mode'],
  [{ TaskTemplate, Mode: { GlobalJob: {} }, UpdateConfig: {} }, argument('Jobs may not have an update config')],
  [
    { TaskTemplate, Mode: { ReplicatedJob: { TotalCompletions: 100_001 } } },
    argument('a job has 100000 tasks at most'),
  ],
  [mounts({ Type: 'cluster' }), 'mounts of the type cluster are not implemented for services', 'notImplemented'],
  [template({ Runtime: 'plugin' }), 'services of the runtime type "plugin" are not implemented', 'notImplemented'],
  [template({ PluginSpec: {} }), 'mismatched Runtime and *Spec fields'],
  [
    container({ Privileges: { CredentialSpec: {} } }),
    'invalid CredentialSpec: must either provide "file", "registry", or "config" for credential spec',
  ],
  [
    container({ Privileges: { CredentialSpec: { File: 'x' } } }),
    'Privileges.CredentialSpec is not implemented: it is for Windows',
    'notImplemented',
  ],
  [container({ Privileges: { Seccomp: { Mode: 'odd' } } }), 'invalid seccomp mode: "odd"'],
  [container({ Privileges: { Seccomp: { Mode: 'custom' } } }), 'seccomp mode "custom" needs a profile'],
  [container({ Privileges: { AppArmor: { Mode: 'odd' } } }), 'invalid AppArmor mode: "odd"'],
  [mounts({ Type: 'npipe' }), 'mounts of the type npipe are not implemented for services', 'notImplemented'],
  [
    container({ Hostname: '{{.Nope}}' }),
    argument('expanding hostname failed: "{{.Nope}}": template: unknown field .Nope'),
  ],
  [
    template({ Resources: { MemorySwappiness: 101 } }),
    argument('invalid MemorySwappiness: 101: Must be between 0 and 100, or -1'),
  ],
  [
    template({ Resources: { Reservations: { GenericResources: [{}] } } }),
    'invalid generic resource: it has either a DiscreteResourceSpec or a NamedResourceSpec',
  ],
];

const WHOLE = {
  Name: 'ok1',
  Labels: { x: 'y' },
  TaskTemplate: {
    ContainerSpec: {
      Image: 'busybox',
      Labels: { a: 'b' },
      Command: ['a'],
      Args: ['b'],
      Env: ['A=1', 'B'],
      Dir: '/x',
      User: 'u',
      Mounts: [
        {
          Type: 'bind',
          Source: '/x',
          Target: '/y',
          ReadOnly: true,
          BindOptions: { Propagation: 'rprivate', NonRecursive: true },
        },
        {
          Type: 'volume',
          Source: 'v',
          Target: '/z',
          VolumeOptions: { NoCopy: true, Labels: { l: 'm' }, DriverConfig: { Name: 'local', Options: { o: 'p' } } },
        },
        { Type: 'tmpfs', Target: '/t', TmpfsOptions: { SizeBytes: 4096, Mode: 448 } },
      ],
      StopGracePeriod: 5,
      Hostname: '{{.Service.Name}}-{{.Task.Slot}}',
      Groups: ['10', 'wheel'],
      Privileges: {
        CredentialSpec: null,
        SELinuxContext: { Disable: false, User: 'u', Role: '', Type: 't', Level: '' },
        Seccomp: { Mode: 'custom', Profile: 'e30=' },
        AppArmor: { Mode: 'disabled' },
        NoNewPrivileges: true,
      },
      StopSignal: 'SIGINT',
      TTY: true,
      OpenStdin: true,
      ReadOnly: true,
      Healthcheck: {
        Test: ['CMD', 'x'],
        Interval: 1e6,
        Timeout: 2e6,
        StartPeriod: 3e6,
        StartInterval: 4e6,
        Retries: 5,
      },
      Init: false,
      Hosts: ['1.2.3.4 a b'],
      DNSConfig: { Nameservers: ['9.9.9.9'], Search: ['ex.org'], Options: ['ndots:3'] },
      Isolation: 'default',
      Sysctls: { 'net.ipv4.ip_forward': '0' },
      CapabilityAdd: ['NET_ADMIN'],
      CapabilityDrop: ['CAP_CHOWN'],
      Ulimits: [{ Name: 'nofile', Hard: 200, Soft: 100 }],
      OomScoreAdj: -5,
    },
    Resources: {
      Limits: { NanoCPUs: 1_000_000, MemoryBytes: 4_194_304, Pids: 50 },
      Reservations: {
        NanoCPUs: 2_000_000,
        MemoryBytes: 4_194_304,
        GenericResources: [
          { DiscreteResourceSpec: { Kind: 'SSD', Value: 3 } },
          { NamedResourceSpec: { Kind: 'GPU', Value: 'one' } },
        ],
      },
      SwapBytes: -1,
      MemorySwappiness: 0,
    },
    RestartPolicy: { Condition: 'on-failure', Delay: 7, MaxAttempts: 3, Window: 9 },
    Placement: {
      Constraints: ['node.role==manager'],
      Preferences: [{ Spread: { SpreadDescriptor: 'node.labels.rack' } }],
      MaxReplicas: 2,
      Platforms: [{ Architecture: 'amd64', OS: 'linux' }, { OS: 'linux' }],
    },
    LogDriver: { Name: 'json-file', Options: { 'max-size': '1m' } },
    ForceUpdate: 3,
    Runtime: 'container',
  },
  Mode: { Replicated: { Replicas: 2 } },
  UpdateConfig: { Parallelism: 2, Delay: 4, FailureAction: 'continue', MaxFailureRatio: 0, Order: 'stop-first' },
  RollbackConfig: {
    ...{ Parallelism: 1, FailureAction: 'rollback', Monitor: 9, MaxFailureRatio: 0.5, Order: 'start-first' },
  },
  EndpointSpec: {
    Mode: 'vip',
    Ports: [
      { Name: 'p', Protocol: 'udp', TargetPort: 53, PublishedPort: 5353, PublishMode: 'ingress' },
      { Protocol: 'tcp', TargetPort: 80, PublishMode: 'ingress' },
      { Protocol: 'tcp', TargetPort: 81, PublishedPort: 8081, PublishMode: 'host' },
    ],
  },
};

suite('the specification of a service', () => {
  for (const [body, message, kind = 'invalid'] of [...REFUSED, ...LATER]) {
    test(`${JSON.stringify(body).slice(0, 100)} is refused`, () => {
      assert.throws(() => readServiceSpec(body), { name: 'EngineError', message, kind });
    });
  }

  test('comes back as it was given', () => {
    assert.deepEqual(shown(WHOLE).Spec, WHOLE);
    const Shown = { ContainerSpec: { ...ContainerSpec, Isolation: 'default' }, ForceUpdate: 0, Runtime: 'container' };
    const plain = { Name: 'plain', Labels: {}, TaskTemplate: Shown, Mode: { Replicated: { Replicas: 1 } } };
    assert.deepEqual(shown({ Name: 'plain', TaskTemplate }).Spec, plain);
    assert.deepEqual(shown({ Name: 'plain', TaskTemplate, Mode: { Global: {} } }).Spec, {
      ...plain,
      Mode: { Global: {} },
    });
    assert.deepEqual(shown({ Name: 'plain', TaskTemplate, Mode: { Replicated: {} } }).Spec, plain);
  });

  test('with its defaults shows the values for missing fields', () => {
    const draft = new Draft(new Replica(systemClock));
    const update = { Parallelism: 1, FailureAction: 'pause', Monitor: 5e9, MaxFailureRatio: 0, Order: 'stop-first' };
    const spec = (body: ServiceBody): { TaskTemplate: object; UpdateConfig: object } => {
      const id = createService(draft, { spec: readServiceSpec(body) }, NOW);
      return (presentService(insertDefaults(draft.get('service', id)!)) as { Spec: ReturnType<typeof spec> }).Spec;
    };

    assert.deepEqual(spec({ Name: 'bare', TaskTemplate }), {
      Name: 'bare',
      Labels: {},
      TaskTemplate: {
        ContainerSpec: { Image: 'busybox', StopGracePeriod: 10e9, DNSConfig: {}, Isolation: 'default' },
        Resources: {},
        RestartPolicy: { Condition: 'any', Delay: 5e9, MaxAttempts: 0 },
        Placement: {},
        ForceUpdate: 0,
        Runtime: 'container',
      },
      Mode: { Replicated: { Replicas: 1 } },
      UpdateConfig: update,
      RollbackConfig: update,
    });
    const given = spec({ ...template({ RestartPolicy: { Window: 9, Delay: 0 } }), UpdateConfig: { Parallelism: 3 } });
    assert.deepEqual(given.UpdateConfig, { ...update, Parallelism: 3 });
    const RestartPolicy = { Condition: 'any', Delay: 0, MaxAttempts: 0, Window: 9 };
    assert.deepEqual((given.TaskTemplate as { RestartPolicy: object }).RestartPolicy, RestartPolicy);
  });

  test('constraints, labels, replicas and the update make no task old; all else does', () => {
    const hash = (body: object): string => templateOf('s', readServiceSpec({ ...WHOLE, ...body })).hash;
    const of = (part: object): object => ({ TaskTemplate: { ...WHOLE.TaskTemplate, ...part } });

    for (const body of [
      of({ Placement: { Constraints: ['node.id==x'], MaxReplicas: 1 } }),
      { Labels: {} },
      { Mode: { Replicated: { Replicas: 9 } } },
      { UpdateConfig: null },
    ]) {
      assert.equal(hash(body), hash({}), JSON.stringify(body));
    }
    for (const body of [
      of({ LogDriver: null }),
      of({ ContainerSpec }),
      { EndpointSpec: null },
      { Networks: [{ Target: 'n' }] },
    ]) {
      assert.notEqual(hash(body), hash({}), JSON.stringify(body));
    }
  });
});

suite('creating and updating', () => {
  const replica = new Replica(systemClock);
  const draft = new Draft(replica);
  const create = (body: ServiceBody): string => createService(draft, { spec: readServiceSpec(body) }, NOW);
  const id = create(WHOLE);

  test('a name is taken once', () => {
    assert.throws(() => create({ Name: 'ok1', TaskTemplate }), {
      kind: 'conflict',
      message:
        'rpc error: code = AlreadyExists desc = name conflicts with an existing object: service ok1 already exists',
    });
  });

  test('a port is published once', () => {
    const Ports = [{ TargetPort: 80, PublishedPort: 5353, Protocol: 'udp' }];
    assert.throws(() => create({ Name: 'ok2', TaskTemplate, EndpointSpec: { Ports } }), {
      kind: 'invalid',
      message: argument(`port '5353' is already in use by service 'ok1' (${id}) as an ingress port`),
    });
  });

  test('an update has the version, the name and the mode of its predecessor', () => {
    const update = (body: object, version = 0): void => {
      updateService(
        draft,
        { ref: 'ok1', version, isRollback: false, spec: readServiceSpec({ ...WHOLE, ...body }) },
        NOW,
      );
    };

    assert.throws(() => update({}, 7), { message: 'rpc error: code = Unknown desc = update out of sequence' });
    assert.throws(() => update({ Name: 'other' }), { kind: 'notImplemented', message: /renaming services/ });
    assert.throws(() => update({ Mode: { Global: {} } }), { kind: 'notImplemented', message: /mode change/ });
    update({ Labels: { new: '1' } });
    assert.deepEqual(draft.get('service', id)?.spec.labels, { new: '1' });
    assert.deepEqual(draft.get('service', id)?.previousSpec?.labels, { x: 'y' });
  });
});

function shown(body: object): { Spec: object } {
  const draft = new Draft(new Replica(systemClock));
  const id = createService(draft, { spec: readServiceSpec(body) }, NOW);
  return presentService(draft.get('service', id)!) as { Spec: object };
}

function template(part: object): ServiceBody {
  return { TaskTemplate: { ContainerSpec, ...part } };
}

function container(fields: object): ServiceBody {
  return { TaskTemplate: { ContainerSpec: { ...ContainerSpec, ...fields } } };
}

function constraints(...Constraints: string[]): ServiceBody {
  return template({ Placement: { Constraints } });
}

function mounts(...Mounts: object[]): ServiceBody {
  return container({ Mounts });
}
