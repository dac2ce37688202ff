import assert from 'node:assert/strict';
import { test } from 'node:test';

import { refuseLaterFields } from './later-fields.ts';

const ofContainer = (fields: object): object => ({ TaskTemplate: { ContainerSpec: { Image: 'a', ...fields } } });

const refused: [body: object, field: string][] = [
  [ofContainer({ Healthcheck: { Test: ['NONE'] } }), 'TaskTemplate.ContainerSpec.Healthcheck'],
  [ofContainer({ ReadOnly: true }), 'TaskTemplate.ContainerSpec.ReadOnly'],
  [ofContainer({ Isolation: 'hyperv' }), 'TaskTemplate.ContainerSpec.Isolation'],
  [
    ofContainer({ Mounts: [{ Type: 'bind' }, { Type: 'bind', BindOptions: { NonRecursive: true } }] }),
    'TaskTemplate.ContainerSpec.Mounts.BindOptions.NonRecursive',
  ],
  [{ TaskTemplate: { Resources: { Limits: { Pids: 5 } } } }, 'TaskTemplate.Resources.Limits.Pids'],
  [
    { TaskTemplate: { Placement: { Preferences: [{ Spread: {} }, { Spread: { a: 1 } }] } } },
    'TaskTemplate.Placement.Preferences',
  ],
  [{ Networks: [{ Target: 'a', DriverOpts: { b: 'c' } }] }, 'Networks.DriverOpts'],
  [{ Mode: { GlobalJob: {} } }, 'Mode.GlobalJob'],
  [{ Mode: { ReplicatedJob: { TotalCompletions: 3 } } }, 'Mode.ReplicatedJob'],
];
for (const [body, field] of refused) {
  test(`the field ${field} is refused by its name`, () => {
    assert.throws(() => refuseLaterFields(body), {
      kind: 'notImplemented',
      message: `${field} is not implemented: version 1.24 of the API does not have it`,
    });
  });
}

const ignored: object[] = [
  {
    Foo: 1,
    TaskTemplate: { Foo: { Bar: [1] } },
    EndpointSpec: { ExposedPorts: [{ Port: 80 }], Ports: [{ Foo: 'x' }] },
  },
  ofContainer({ Foo: ['x'], Mounts: [{ Type: 'bind', Consistency: 'cached', Foo: {} }] }),
  ofContainer({
    Configs: [],
    Hostname: '',
    Init: false,
    DNSConfig: { Nameservers: [] },
    Isolation: 'default',
  }),
  { Mode: { Replicated: { Replicas: 1 }, ReplicatedJob: null }, TaskTemplate: { Runtime: 'container' } },
  JSON.parse('{"__proto__": {"Mode": {"GlobalJob": {}}}, "constructor": 1}') as object,
  {},
];
for (const body of ignored) {
  test(`unknown fields and empty ones are ignored: ${JSON.stringify(body)}`, () => {
    refuseLaterFields(body);
  });
}
