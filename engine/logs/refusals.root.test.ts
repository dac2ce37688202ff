import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { NO_NETWORK, NO_NETWORK_DOCKERD, OWN_NETNS } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const DEFAULTS = ['--log-opt', 'max-size=1m', '--log-opt', 'cache-max-size=7m'];

let engine: TestEngine;
let dockerd: Dockerd;

before(async () => {
  engine = await TestEngine.start({ netns: OWN_NETNS, flags: [...NO_NETWORK, ...DEFAULTS] });
  dockerd = await Dockerd.start([...NO_NETWORK_DOCKERD, ...DEFAULTS], OWN_NETNS);
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
});

after(async () => {
  await engine?.[Symbol.asyncDispose]();
  await dockerd?.[Symbol.asyncDispose]();
});

type Options = Record<string, string>;

/** Status and message of a creation with these options, or the options as an inspect shows them. */
async function created(api: Pick<TestEngine, 'post' | 'get'>, LogConfig: unknown): Promise<unknown> {
  const answer = await api.post<{ Id: string; message: string }>('/containers/create', {
    Image: 'busybox',
    Cmd: ['true'],
    HostConfig: { NetworkMode: 'none', LogConfig },
  });
  if (answer.status !== 201) return { status: answer.status, message: answer.body.message };
  const { body } = await api.get<{ HostConfig: { LogConfig: unknown } }>(`/containers/${answer.body.Id}/json`);
  return body.HostConfig.LogConfig;
}

const UDP = { 'gelf-address': 'udp://127.0.0.1:12201' };
const TCP = { 'gelf-address': 'tcp://127.0.0.1:12201' };

const rows: [string | undefined, Options][] = [
  [undefined, {}],
  [undefined, { 'max-file': '2' }],
  ['json-file', { 'max-file': '2' }],
  ['json-file', { color: 'red' }],
  ['json-file', { mode: 'lazy' }],
  ['json-file', { mode: 'non-blocking', 'max-buffer-size': '4m' }],
  ['json-file', { 'max-buffer-size': '4m' }],
  ['json-file', { mode: 'non-blocking', 'max-buffer-size': 'x' }],
  ['json-file', { 'cache-disabled': 'maybe' }],
  ['json-file', { 'cache-disabled': 'T', 'cache-max-file': '3', 'cache-compress': 'false' }],
  ['none', { color: 'red' }],
  ['syslog', {}],
  ['syslog', { 'syslog-address': '127.0.0.1:514' }],
  ['syslog', { 'syslog-address': 'http://127.0.0.1' }],
  ['syslog', { 'syslog-address': 'udp://' }],
  ['syslog', { 'syslog-address': 'tcp://1.2.3.4:x' }],
  ['syslog', { 'syslog-address': 'tcp://a:1:2' }],
  ['syslog', { 'syslog-address': 'tcp://[::1]' }],
  ['syslog', { 'syslog-address': 'unix:///no/such/socket' }],
  ['syslog', { 'syslog-address': 'unixgram:///no/such/socket' }],
  ['syslog', { 'syslog-facility': 'local8' }],
  ['syslog', { 'syslog-facility': '24' }],
  ['syslog', { 'syslog-facility': '-1' }],
  ['syslog', { 'syslog-facility': '0', 'syslog-format': 'rfc5424micro' }],
  ['syslog', { 'syslog-format': 'rfc1' }],
  ['syslog', { 'syslog-color': 'red' }],
  ['syslog', { 'max-size': '1m' }],
  ['gelf', {}],
  ['gelf', { 'gelf-address': '127.0.0.1:1' }],
  ['gelf', { 'gelf-address': 'unix:///x' }],
  ['gelf', { 'gelf-address': 'udp://127.0.0.1' }],
  ['gelf', { ...UDP, 'gelf-compression-type': 'lz4' }],
  ['gelf', { ...UDP, 'gelf-compression-level': '10' }],
  ['gelf', { ...UDP, 'gelf-compression-level': '-1', 'gelf-compression-type': 'none' }],
  ['gelf', { ...TCP, 'gelf-compression-level': '1' }],
  ['gelf', { ...TCP, 'gelf-tcp-max-reconnect': '5', 'gelf-tcp-reconnect-delay': '0' }],
  ['gelf', { ...TCP, 'gelf-tcp-max-reconnect': '-5' }],
  ['gelf', { ...UDP, 'gelf-tcp-reconnect-delay': '5' }],
  ['gelf', { ...UDP, color: 'red' }],
  ['fluentd', {}],
  ['fluentd', { 'fluentd-address': 'tcp://host:x' }],
  ['fluentd', { 'fluentd-address': 'a:1:2' }],
  ['fluentd', { 'fluentd-address': 'unix:///run/fluentd.sock', 'fluentd-async': 'true' }],
  ['fluentd', { 'fluentd-async': 'true', 'fluentd-async-connect': 'true' }],
  ['fluentd', { 'fluentd-async': 'maybe' }],
  ['fluentd', { 'fluentd-request-ack': 'x' }],
  ['fluentd', { 'fluentd-sub-second-precision': 'x' }],
  ['fluentd', { 'fluentd-buffer-limit': 'x' }],
  ['fluentd', { 'fluentd-buffer-limit': '2m', 'fluentd-max-retries': '3', 'fluentd-retry-wait': '1m30s' }],
  ['fluentd', { 'fluentd-max-retries': '-1' }],
  ['fluentd', { 'fluentd-retry-wait': '5' }],
  ['fluentd', { 'fluentd-retry-wait': 'soon' }],
  ['fluentd', { color: 'red' }],
  ['splunk', { color: 'red' }],
  ['awslogs', {}],
  ['awslogs', { 'awslogs-group': '' }],
  ['awslogs', { 'awslogs-group': 'g', 'awslogs-stream': 's', 'awslogs-region': 'r', 'awslogs-create-group': 'T' }],
  ['awslogs', { 'awslogs-group': 'g', 'awslogs-create-group': 'maybe' }],
  ['awslogs', { 'awslogs-group': 'g', 'awslogs-force-flush-interval-seconds': '0' }],
  ['awslogs', { 'awslogs-group': 'g', 'awslogs-max-buffered-events': 'x' }],
  ['awslogs', { 'awslogs-group': 'g', 'awslogs-datetime-format': '%Y', 'awslogs-multiline-pattern': 'x' }],
  ['awslogs', { 'awslogs-group': 'g', labels: 'a' }],
  ['journald', { tag: '{{.Name}}', labels: 'a', 'env-regex': 'b' }],
  ['journald', { 'max-size': '1m' }],
  ['local', { 'max-size': '1m', 'max-file': '3', compress: 'false' }],
  ['local', { labels: 'a' }],
];
for (const [Type, Config] of rows) {
  test(`${Type ?? 'no driver'} with ${JSON.stringify(Config)} is answered as by dockerd`, async () => {
    const LogConfig = { ...(Type !== undefined && { Type }), Config };

    const [ours, theirs] = [await created(engine, LogConfig), await created(dockerd.api, LogConfig)];

    assert.deepEqual(ours, theirs);
  });
}

/** Options that dockerd refuses in the same words when the container starts. */
const atTheStart: [string, Options][] = [
  ['local', { 'max-size': 'x' }],
  ['local', { 'max-file': 'x' }],
  ['local', { 'max-file': '1' }],
  ['local', { 'max-file': '-1' }],
  ['local', { compress: 'x' }],
  ['fluentd', { 'fluentd-address': 'udp://127.0.0.1:1' }],
  ['splunk', {}],
  ['splunk', { 'splunk-url': 'http://127.0.0.1:1' }],
  ['splunk', { 'splunk-url': 'x', 'splunk-token': 't' }],
  ['splunk', { 'splunk-url': 'http://a/b', 'splunk-token': 't' }],
  ['splunk', { 'splunk-url': 'http://a', 'splunk-token': 't', 'splunk-gzip': '' }],
  ['splunk', { 'splunk-url': 'http://a', 'splunk-token': 't', 'splunk-gzip-level': '11' }],
  ['splunk', { 'splunk-url': 'http://a', 'splunk-token': 't', 'splunk-gzip-level': 'x' }],
  ['splunk', { 'splunk-url': 'http://a', 'splunk-token': 't', 'splunk-verify-connection': 'x' }],
];
for (const [Type, Config] of atTheStart) {
  test(`${Type} with ${JSON.stringify(Config)} is refused at the creation, as by dockerd at the start`, async () => {
    const body = { Image: 'busybox', Cmd: ['true'], HostConfig: { NetworkMode: 'none', LogConfig: { Type, Config } } };

    const ours = await engine.post<{ message: string }>('/containers/create', body);
    const { body: created } = await dockerd.api.post<{ Id: string }>('/containers/create', body);
    const theirs = await dockerd.api.post<{ message: string }>(`/containers/${created.Id}/start`);

    assert.equal(ours.status, 400);
    assert.equal(`failed to initialize logging driver: ${ours.body.message}`, theirs.body.message);
  });
}
