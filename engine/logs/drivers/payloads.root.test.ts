import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync, inflateSync } from 'node:zlib';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { HttpRecorder, type Asked } from '@gantry/testing/receivers/http-recorder.ts';
import {
  NO_NETWORK,
  NO_NETWORK_DOCKERD,
  OWN_NETNS,
  StreamReceiver,
  UdpReceiver,
} from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { decodeMulti, type ExtData } from '@msgpack/msgpack';

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

type Options = Record<string, string>;
type Run = Readonly<{ id: string; pid: string; messages: string[] }>;

/** One line of each kind: an empty one, bytes that are no text, one of stderr, one that is too long for one piece, and the rest without a newline. */
const SCRIPT = String.raw`echo one; echo; echo 'two <&>"é' >&2; echo '{"a": 1.50}'; printf 'a\377b\n'; head -c 40000 /dev/zero | tr '\0' l; echo; printf end`;
const TAG = '{{.Name}}/{{.FullID}}/{{.ImageName}}/{{.ImageID}}/{{.DaemonName}}/{{.ContainerName}}';

/** Runs the same container with the same log on one of the two, and takes what its receiver gets. */
async function ran(api: Api, Type: string, Config: Options, messages: () => Promise<string[]>): Promise<Run> {
  const answer = await api.post<{ Id: string }>('/containers/create?name=payload', {
    Image: 'busybox',
    Cmd: ['sh', '-c', SCRIPT],
    Labels: { 'com.example/who': 'me', other: '1' },
    Env: ['COLOR=red=blue', '_UNDER=x'],
    HostConfig: { NetworkMode: 'none', LogConfig: { Type, Config } },
  });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { Id: id } = answer.body;
  await api.post(`/containers/${id}/start`);
  const received = await messages();
  await api.delete(`/containers/${id}?force=1`);
  return { id, pid: String(api === engine ? engine.pid : dockerd.pid), messages: received };
}

/** Replaces values that differ between two runs; the order of stdout and stderr is not certain. */
function comparable({ id, pid, messages }: Run): string[] {
  return messages
    .map((message) =>
      message
        .replaceAll(id, '<id>')
        .replaceAll(id.slice(0, 12), '<short id>')
        .replaceAll(pid, '<pid>')
        .replaceAll(/l{100,}/g, (long) => `<${long.length} l>`)
        // Without the zeros at its end.
        .replaceAll(/(?<="_created":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z/g, '<nano>')
        .replaceAll(/[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d/g, '<stamp>')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)/g, '<micro>')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)/g, '<second>')
        .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7,9}Z/g, '<nano>')
        .replaceAll(/"timestamp":\d{10}(\.\d{1,3})?(?=[,}])/g, '"timestamp":<seconds>'),
    )
    .toSorted();
}

async function compare(Type: string, Config: Options, messages: () => Promise<string[]>): Promise<void> {
  const theirs = comparable(await ran(dockerd.api, Type, Config, messages));
  const ours = comparable(await ran(engine, Type, Config, messages));

  assert.deepEqual(ours, theirs);
}

/** Lines without the empty one, which syslog and gelf do not send. */
const LINES = 8;

function isComplete(messages: readonly string[]): boolean {
  return messages.length >= LINES;
}

const datagramFormats: Options[] = [
  {},
  { 'syslog-format': 'rfc3164', 'syslog-facility': 'local3', tag: TAG },
  { 'syslog-format': 'rfc5424', 'syslog-facility': '23' },
  { 'syslog-format': 'rfc5424micro', tag: 'web {{.ID}}' },
];
for (const options of datagramFormats) {
  test(`syslog over UDP: ${JSON.stringify(options)}`, async () => {
    await using receiver = await UdpReceiver.start();

    await compare('syslog', { 'syslog-address': `udp://127.0.0.1:${receiver.port}`, ...options }, async () => {
      await receiver.until((messages) => messages.length >= LINES);
      return receiver.messages.splice(0).map((message) => message.toString('latin1'));
    });
  });
}

const streamFormats: Options[] = [{}, { 'syslog-format': 'rfc5424' }];
for (const options of streamFormats) {
  test(`syslog over TCP: ${JSON.stringify(options)}`, async () => {
    await using receiver = await StreamReceiver.start();
    let taken = 0;

    await compare('syslog', { 'syslog-address': `tcp://127.0.0.1:${receiver.port}`, ...options }, async () => {
      const rest = (): string[] => receiver.received.toString('latin1', taken).split(/(?<=\n)/);
      await receiver.until(() => isComplete(rest()) && rest().at(-1)!.endsWith('\n'));
      const messages = rest();
      taken = receiver.received.length;
      return messages;
    });
  });
}

test('syslog over a Unix socket', async () => {
  const path = join(engine.directory, 'syslog.sock');
  await using receiver = await StreamReceiver.start({ path });
  let taken = 0;

  await compare('syslog', { 'syslog-address': `unix://${path}` }, async () => {
    const rest = (): string[] => receiver.received.toString('latin1', taken).split(/(?<=\n)/);
    await receiver.until(() => isComplete(rest()) && rest().at(-1)!.endsWith('\n'));
    const messages = rest();
    taken = receiver.received.length;
    return messages;
  });
});

const gelfOptions: Options[] = [
  { tag: TAG, labels: 'com.example/who,missing', 'env-regex': 'COL|_UND' },
  { 'gelf-compression-type': 'zlib', 'gelf-compression-level': '9' },
  { 'gelf-compression-type': 'none' },
  { 'labels-regex': 'o', env: 'COLOR', tag: '{{join (split .ImageName ":") "/"}} {{json .ContainerLabels}}' },
];
for (const options of gelfOptions) {
  test(`gelf over UDP: ${JSON.stringify(options)}`, async () => {
    await using receiver = await UdpReceiver.start();

    await compare('gelf', { 'gelf-address': `udp://127.0.0.1:${receiver.port}`, ...options }, async () => {
      await receiver.until((datagrams) => gelfMessages(datagrams).length >= LINES);
      return gelfMessages(receiver.messages.splice(0));
    });
  });
}

test('gelf over TCP', async () => {
  await using receiver = await StreamReceiver.start();
  let taken = 0;

  await compare('gelf', { 'gelf-address': `tcp://127.0.0.1:${receiver.port}` }, async () => {
    const rest = (): string[] => receiver.received.toString('utf8', taken).split('\0').slice(0, -1);
    await receiver.until(() => isComplete(rest()));
    const messages = rest().map(sorted);
    taken = receiver.received.length;
    return messages;
  });
});

const fluentdOptions: Options[] = [
  { labels: 'com.example/who', env: 'COLOR' },
  { 'fluentd-sub-second-precision': 'true', tag: 'docker.{{.Name}}' },
  { 'labels-regex': '^com\\.', 'env-regex': 'COL|_UND', tag: '{{upper .Name}}.{{index .ContainerLabels "other"}}' },
];
for (const options of fluentdOptions) {
  test(`fluentd: ${JSON.stringify(options)}`, async () => {
    await using receiver = await StreamReceiver.start();
    let taken = 0;

    await compare('fluentd', { 'fluentd-address': `127.0.0.1:${receiver.port}`, ...options }, async () => {
      await receiver.until((each) => fluentdMessages(each.received.subarray(taken)).length > LINES);
      const messages = fluentdMessages(receiver.received.subarray(taken));
      taken = receiver.received.length;
      return messages;
    });
  });
}

const splunkOptions: Options[] = [
  { env: 'COLOR', tag: TAG },
  { labels: 'other', 'labels-regex': 'who$', 'env-regex': '^_', tag: '{{with .Name}}{{. | printf "%-9s|"}}{{end}}' },
  {
    'splunk-format': 'json',
    'splunk-gzip': 'true',
    'splunk-source': 's',
    'splunk-sourcetype': 't',
    'splunk-index': 'i',
  },
  { 'splunk-format': 'raw', labels: 'other', 'splunk-verify-connection': 'false', 'splunk-gzip-level': '1' },
  { 'splunk-format': 'raw', tag: '', 'splunk-index-acknowledgment': 'true' },
];
for (const options of splunkOptions) {
  test(`splunk: ${JSON.stringify(options)}`, async () => {
    await using receiver = await HttpRecorder.start(() => ({ status: 200, body: '{"text":"Success","code":0}' }));
    const url = `http://127.0.0.1:${receiver.port}`;
    const wanted = options['splunk-format'] === 'raw' ? LINES : LINES + 1; // an empty event is none

    await compare('splunk', { 'splunk-url': url, 'splunk-token': 'secret', ...options }, async () => {
      await receiver.until((asked) => asked.flatMap(splunkEvents).length >= wanted);
      return [...new Set(receiver.asked.map(shownRequest)), ...receiver.asked.splice(0).flatMap(splunkEvents)];
    });
  });
}

/** The messages that are complete, with their fields in one order. */
function fluentdMessages(bytes: Buffer): string[] {
  const messages: string[] = [];
  try {
    for (const message of decodeMulti(bytes)) {
      const [tag, time, record, option] = message as [string, unknown, Record<string, unknown>, unknown];
      const { log, ...fields } = record;
      const kind = typeof time === 'number' ? 'seconds' : `extension ${(time as ExtData).type}`;
      const text = log instanceof Uint8Array ? Buffer.from(log).toString('latin1') : log;
      if ('partial_id' in fields) fields['partial_id'] = typeof fields['partial_id'];
      messages.push(JSON.stringify([tag, kind, sorted(JSON.stringify({ ...fields, log: text })), option]));
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // the rest is still to come
  }
  return messages;
}

/** The parts of a request that count beside its events. */
function shownRequest({ method, url, headers }: Asked): string {
  const { authorization, 'content-encoding': encoding, 'x-splunk-request-channel': channel } = headers;
  return JSON.stringify({ method, url, authorization, encoding, channel: typeof channel });
}

function splunkEvents({ text }: Asked): string[] {
  return text === ''
    ? []
    : text
        .replaceAll(/"time":"\d+\.\d{6}"/g, '"time":"<seconds>"')
        .split(/(?<=\})(?=\{"event":)/)
        .map(sorted);
}

/** Puts chunks together, and unpacks. */
function gelfMessages(datagrams: readonly Buffer[]): string[] {
  const chunks = new Map<string, Buffer[]>();
  const whole: Buffer[] = [];
  for (const datagram of datagrams) {
    if (datagram.readUInt16BE(0) !== 0x1e0f) {
      whole.push(datagram);
      continue;
    }
    const id = datagram.toString('hex', 2, 10);
    const pieces = chunks.get(id) ?? [];
    pieces[datagram[10]!] = datagram.subarray(12);
    chunks.set(id, pieces);
    if (Object.keys(pieces).length === datagram[11]) whole.push(Buffer.concat(pieces));
  }
  return whole.map((message) => sorted(unpacked(message)));
}

function unpacked(message: Buffer): string {
  if (message[0] === 0x1f) return gunzipSync(message).toString();
  return (message[0] === 0x78 ? inflateSync(message) : message).toString();
}

/** Fields in one order: it means nothing, and Go's maps are sorted. */
function sorted(json: string): string {
  const fields = Object.entries(JSON.parse(json) as Record<string, unknown>);
  return JSON.stringify(Object.fromEntries(fields.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}
