import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const URL_OF_METRICS = 'http://127.0.0.1:9323/metrics';
const FLAGS = ['--metrics-addr=127.0.0.1:9323'];
/** Metrics of dockerd that are missing here: its parts, its language, and the cluster that it may be in. */
const NOT_OURS =
  /^(go_|swarm_|etcd_|promhttp_|logger_|process_virtual_memory|engine_daemon_host_info_functions)|^engine_daemon_(stop|exec)/;
const OURS = ['builder_steps_seconds', 'engine_daemon_image_actions_seconds', 'nodejs_heap_used_bytes'];

suite('metrics for Prometheus', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  let texts: { ours: string; theirs: string };

  before(async () => {
    [engine, dockerd] = await Promise.all([
      TestEngine.start({ flags: FLAGS, image: false }),
      Dockerd.start([...FLAGS, '--experimental', '--bridge=none', '--iptables=false']),
    ]);
    await Promise.all([useAll(engine), useAll(dockerd.api)]);
    const ofDockerd = await execute('nsenter', [`--net=/proc/${dockerd.pid}/ns/net`, 'curl', '-s', URL_OF_METRICS]);
    texts = { ours: await engine.onHost(['curl', '-s', URL_OF_METRICS]), theirs: ofDockerd.stdout };
  });
  after(async () => {
    await Promise.all([engine[Symbol.asyncDispose](), dockerd[Symbol.asyncDispose]()]);
  });

  test('they have the names and types of those of dockerd', () => {
    const ours = typesIn(texts.ours);
    const theirs = typesIn(texts.theirs);

    assert.deepEqual(
      ours.filter((line) => !OURS.some((name) => line.startsWith(`${name} `))),
      theirs.filter((line) => !NOT_OURS.test(line)),
    );
    assert.equal(ours.filter((line) => OURS.some((name) => line.startsWith(`${name} `))).length, OURS.length);
  });

  for (const sample of [
    'engine_daemon_container_states_containers{state="running"}',
    'engine_daemon_container_states_containers{state="stopped"}',
    'engine_daemon_container_states_containers{state="paused"}',
    'engine_daemon_engine_cpus_cpus',
    'builder_builds_triggered_total',
  ]) {
    test(`${sample} is as of dockerd`, () => {
      assert.notEqual(valueOf(texts.ours, sample), undefined);
      assert.equal(valueOf(texts.ours, sample), valueOf(texts.theirs, sample));
    });
  }

  for (const [sample, expected] of [
    // dockerd counts one more of each, from its start.
    ['engine_daemon_container_actions_seconds_count{action="create"}', '4'],
    ['engine_daemon_container_actions_seconds_count{action="start"}', '4'],
    ['engine_daemon_container_actions_seconds_bucket{action="start",le="+Inf"}', '4'],
    ['engine_daemon_container_actions_seconds_count{action="delete"}', '1'],
    ['engine_daemon_container_actions_seconds_count{action="stop"}', '1'],
    ['engine_daemon_container_actions_seconds_count{action="exec"}', '1'],
    ['builder_steps_seconds_count{instruction="ENV"}', '1'],
    ['builder_builds_failed_total{reason="dockerfile_syntax_error"}', '1'],
    ['builder_builds_failed_total{reason="error_processing_commands_error"}', '1'],
    ['engine_daemon_network_actions_seconds_count{action="allocate"}', '4'],
  ] as const) {
    test(`${sample} is ${expected}`, () => {
      assert.equal(valueOf(texts.ours, sample), expected);
    });
  }

  for (const [words, status] of [
    [[], '200'],
    [['-H', 'Host: localhost:9323'], '200'],
    [['-H', 'Host: attacker.example'], '403'],
    [['-H', 'Origin: http://attacker.example'], '403'],
    [['-X', 'POST'], '405'],
  ] as const) {
    test(`a request ${words.join(' ')} is answered with ${status}`, async () => {
      const code = await engine.onHost([
        'curl',
        '-s',
        '-o',
        '/dev/null',
        '-w',
        '%{http_code}',
        ...words,
        URL_OF_METRICS,
      ]);

      assert.equal(code, status);
    });
  }

  test('nothing else is served there', async () => {
    const answer = await engine.onHost(['curl', '-s', '-w', '%{http_code}', 'http://127.0.0.1:9323/version']);

    assert.match(answer, /404$/);
  });
});

test('no metrics are served unless that is set', async () => {
  await using engine = await TestEngine.start({ image: false });

  const listening = await engine.onHost(['sh', '-c', 'cat /proc/net/tcp /proc/net/tcp6']);

  assert.doesNotMatch(listening, /:246B /); // 9323
});

async function useAll(api: Api): Promise<void> {
  await api.post('/images/load?quiet=1', await busyboxArchive());
  const create = async (command: string[]): Promise<string> => {
    const { body } = await api.post<{ Id: string }>('/containers/create', {
      Image: 'busybox',
      Cmd: command,
      HostConfig: { NetworkMode: 'none' },
    });
    return body.Id;
  };
  const [sleeping, ended, removed] = [await create(['sleep', '1000']), await create(['true']), await create(['true'])];
  for (const id of [sleeping, ended, removed]) await api.post(`/containers/${id}/start`);
  const { body } = await api.post<{ Id: string }>(`/containers/${sleeping}/exec`, { Cmd: ['true'] });
  await api.post(`/exec/${body.Id}/start`, { Detach: true });
  for (const id of [ended, removed]) await api.post(`/containers/${id}/wait`);
  await api.delete(`/containers/${removed}`);
  const stopped = await create(['sleep', '1000']);
  await api.post(`/containers/${stopped}/start`);
  await api.post(`/containers/${stopped}/stop?t=0`);
  for (const text of ['FROM busybox\nENV a=b\n', 'FROM busybox\nENV\n', 'FROM busybox\nCOPY nothing /\n']) {
    await api.post('/build', new TarWriter().add({ name: 'Dockerfile', content: text }).end());
  }
}

function typesIn(text: string): string[] {
  return [...text.matchAll(/^# TYPE (.*)$/gm)].map(([, line]) => line!).toSorted();
}

function valueOf(text: string, sample: string): string | undefined {
  return text
    .split('\n')
    .find((line) => line.startsWith(`${sample} `))
    ?.slice(sample.length + 1);
}
