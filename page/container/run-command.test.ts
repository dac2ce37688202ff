import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Inspect } from '@gantry/client/containers.ts';

import { runCommand } from './run-command.ts';

type Given = { config?: object; host?: object };

/** A container as an inspect shows it, with the fields that the command reads. */
function container({ config = {}, host = {} }: Given): Inspect {
  const Config = {
    Env: [],
    Cmd: null,
    Entrypoint: null,
    Image: 'busybox',
    Labels: {},
    User: '',
    WorkingDir: '',
    Hostname: '',
  };
  const HostConfig = {
    NetworkMode: 'default',
    PortBindings: {},
    RestartPolicy: { Name: '', MaximumRetryCount: 0 },
    PidMode: '',
  };
  const numbers = { Memory: 0, CpuShares: 0, CpusetCpus: '' };
  const inspect: unknown = {
    Id: 'abc',
    Name: '/web',
    Config: { ...Config, ...config },
    HostConfig: { ...HostConfig, ...numbers, ...host },
  };
  return inspect as Inspect;
}

const ROWS: readonly (readonly [Given, string])[] = [
  [{}, 'busybox'],
  [{ config: { Cmd: ['sh', '-c', `echo "it's"`] } }, `busybox sh -c 'echo "it'\\''s"'`],
  [{ config: { Env: ['PATH=/bin', 'A=b c', 'X=$(id)'] } }, `--env 'A=b c' --env 'X=$(id)' busybox`],
  [
    { host: { PortBindings: { '80/tcp': [{ HostIp: '::1', HostPort: '8080' }] } } },
    `--publish '[::1]:8080:80' busybox`,
  ],
  [{ host: { Binds: ['/a:/b:ro'], Memory: 64, NanoCpus: 5e8 } }, '--volume /a:/b:ro --memory 64 --cpus 0.5 busybox'],
  [
    { host: { RestartPolicy: { Name: 'on-failure', MaximumRetryCount: 3 } } },
    '--restart on-failure:3 --name web busybox',
  ],
  [{ config: { Entrypoint: ['/init', '--x'], Cmd: ['run'] } }, '--entrypoint /init busybox --x run'],
  [
    { config: { Tty: true, OpenStdin: true }, host: { Privileged: true, CapAdd: ['NET_ADMIN'] } },
    '--privileged --cap-add NET_ADMIN busybox',
  ],
  [{ host: { NetworkMode: 'shop' } }, '--network shop busybox'],
  [
    { config: { Healthcheck: { Test: ['CMD-SHELL', 'curl -f localhost || exit 1'], Interval: 5e9, Retries: 3 } } },
    `--health-cmd 'curl -f localhost || exit 1' --health-interval 5000ms --health-retries 3 busybox`,
  ],
  [{ config: { Healthcheck: { Test: ['NONE'] } } }, '--no-healthcheck busybox'],
  [{ config: { StopSignal: 'SIGINT', StopTimeout: 30 } }, '--stop-signal SIGINT --stop-timeout 30 busybox'],
];

for (const [given, end] of ROWS) {
  test(`the command of ${JSON.stringify(given)} ends with ${end}`, () => {
    const image = { Env: ['PATH=/bin'], Cmd: null, Entrypoint: null };

    const command = runCommand(container(given), image);

    assert.ok(command.startsWith('docker run --detach '), command);
    assert.ok(command.endsWith(end), command);
  });
}
