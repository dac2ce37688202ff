import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { unframe } from '@gantry/client/frames.ts';
import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { NO_NETWORK, NO_NETWORK_DOCKERD, OWN_NETNS } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const TAGS = [
  '{{.ID}} {{.FullID}} {{.Name}} {{.ImageID}} {{.ImageFullID}} {{.ImageName}}',
  '{{.DaemonName}} {{.Command}} {{.Hostname}}',
  '{{.ContainerID}} {{.ContainerName}} {{.ContainerImageID}} {{.ContainerImageName}}',
  '{{.ContainerEntrypoint}} {{.ContainerArgs}} {{len .ContainerArgs}} {{index .ContainerArgs 0}}',
  '{{.ContainerLabels}} {{json .ContainerLabels}} {{index .ContainerLabels "kind"}}',
  '{{range $key, $value := .ContainerLabels}}{{$key}}={{$value}};{{end}}',
  '{{range .ContainerEnv}}<{{.}}>{{end}}',
  '{{if eq .Name "tagged"}}yes{{else}}no{{end}}',
  '{{with .ContainerLabels}}{{.kind}}{{end}}',
  '{{with $x := .Name}}{{$x | upper}}{{end}}',
  '{{$n := .Name}}{{$n}}-{{$.ImageName}}',
  '{{lower "ABC"}} {{title "some words"}} {{truncate .Name 3}} {{pad .Name 1 2}}|',
  '{{join (split .Name "g") "/"}}',
  '{{printf "%s_%q_%-9s|" .Name .ImageName .Name}}',
  'a {{- .Name -}} b {{/* nothing */}}',
  '{{slice .FullID 0 4 | len}}',
  '{{index (split .ContainerName "/") 1}}',
  '{{not .Name}} {{and .Name .ImageName}} {{or "" .Name}}',
  'plain words',
  '{"quotes": "<&>"}',
  // refused
  '{{.Nothing}}',
  '{{.Name',
  '{{if .Name}}x',
  '{{end}}',
  '{{nosuch .Name}}',
  '{{$x}}',
  '{{index .ContainerArgs 9}}',
  '{{}}',
];

suite('tags of log drivers, on our daemon and on dockerd', () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    engine = await TestEngine.start({ netns: OWN_NETNS, flags: NO_NETWORK });
    dockerd = await Dockerd.start(NO_NETWORK_DOCKERD, OWN_NETNS);
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => {
    await engine?.[Symbol.asyncDispose]();
    await dockerd?.[Symbol.asyncDispose]();
  });

  for (const tag of TAGS) {
    test(tag, async () => {
      const [ours, theirs] = [await written(engine, tag), await written(dockerd.api, tag)];

      assert.equal(ours, theirs);
    });
  }

  for (const [Type, Config] of [
    ['json-file', {}],
    ['journald', {}],
    ['gelf', { 'gelf-address': 'udp://127.0.0.1:1' }],
    ['fluentd', { 'fluentd-async': 'true' }],
    ['splunk', { 'splunk-url': 'http://127.0.0.1:1', 'splunk-token': 't', 'splunk-verify-connection': 'false' }],
  ] as const) {
    for (const option of ['labels-regex', 'env-regex']) {
      test(`${Type} refuses a ${option} that is no pattern`, async () => {
        const LogConfig = { Type, Config: { ...Config, [option]: 'a(' } };

        assert.equal(await runs(engine, LogConfig), undefined);
        assert.equal(await runs(dockerd.api, LogConfig), undefined);
      });
    }
  }
});

/** The tag as it stands in the details of a line; the ids of this run are neutral. */
async function written(api: Api, tag: string): Promise<string> {
  const id = await runs(api, { Type: 'json-file', Config: { tag } });
  if (id === undefined) return 'refused';
  await api.post(`/containers/${id}/wait`);
  const { raw } = await api.get(`/containers/${id}/logs?stdout=1&details=1`);
  await api.delete(`/containers/${id}`);
  return unframe(raw).stdout.replaceAll(id, '<id>').replaceAll(id.slice(0, 12), '<short id>');
}

/** Creates and starts a container; undefined when the one or the other is refused, which is then removed. */
async function runs(api: Api, LogConfig: unknown): Promise<string | undefined> {
  const created = await api.post<{ Id: string }>('/containers/create?name=tagged', {
    Image: 'busybox',
    Cmd: ['echo', 'said'],
    Env: ['A=b', 'PATH=/bin'],
    Labels: { kind: 'web', a: '<1>' },
    HostConfig: { NetworkMode: 'none', LogConfig },
  });
  if (created.status === 400) return undefined;
  const { Id } = created.body;
  const { status } = await api.post(`/containers/${Id}/start`);
  if (status === 204) return Id;
  await api.delete(`/containers/${Id}`);
  return undefined;
}
