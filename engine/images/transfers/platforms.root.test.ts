import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';

const PLAIN = '127.0.0.1:5000';
const WITH_NAMES = '127.0.0.1:5002';
const INDEX = 'application/vnd.docker.distribution.manifest.list.v2+json';
const ALICE = { username: 'alice', password: 'secret-of-alice' };

type Answer = Readonly<{ status: number; body: unknown }>;
type Message = { message?: string };

const layer = (name: string): Buffer => new TarWriter().add({ name, content: name }).end();
const withAuth = (auth: object): { headers: Record<string, string> } => ({
  headers: { 'X-Registry-Auth': Buffer.from(JSON.stringify(auth)).toString('base64') },
});

suite('platforms of images, and images in their registry', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let theirs: Api;
  before(async () => {
    beside = await EnginesBesideRegistries.start({ version: '1.41' });
    theirs = new Api(beside.dockerd.socketPath, '/v1.41');
    const { registries } = beside;
    await registries.registry(5000);
    await registries.registry(5002, { users: { alice: ALICE.password } });
    const place = `${PLAIN}/v2/image`;
    const host = await registries.putImage(place, 'host', [layer('host')]);
    const fields = { architecture: 'arm64', variant: 'v8' };
    const foreign = await registries.putImage(place, 'foreign', [layer('foreign')], { fields });
    const manifests = [
      { ...entry(host), platform: { os: 'linux', architecture: process.arch === 'x64' ? 'amd64' : process.arch } },
      { ...entry(foreign), platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } },
    ];
    await registries.putManifest(place, 'both', { schemaVersion: 2, mediaType: INDEX, manifests }, INDEX);
    const headers = { authorization: `Basic ${Buffer.from(`alice:${ALICE.password}`).toString('base64')}` };
    await registries.putImage(`${WITH_NAMES}/v2/image`, 'host', [layer('host')], { headers });
  });
  after(async () => {
    theirs[Symbol.dispose]();
    await beside[Symbol.asyncDispose]();
  });

  async function both(ask: (api: Api) => Promise<Answer>): Promise<{ ours: Answer; theirs: Answer }> {
    const pick = ({ status, body }: Answer): Answer => ({ status, body });
    return { ours: pick(await ask(beside.engine)), theirs: pick(await ask(theirs)) };
  }

  for (const name of ['image:host', 'image:both', 'image:foreign']) {
    test(`GET /distribution/${name}/json: as dockerd`, async () => {
      const { ours, theirs } = await both(async (api) => await api.get(`/distribution/${PLAIN}/${name}/json`));

      assert.equal(ours.status, 200);
      assert.deepEqual(ours, theirs);
    });
  }

  test('GET /distribution with credentials, without, and with wrong ones', async () => {
    const path = `/distribution/${WITH_NAMES}/image:host/json`;
    const right = await both(async (api) => await api.get(path, withAuth(ALICE)));
    const wrong = await both(async (api) => await api.get(path, withAuth({ ...ALICE, password: 'wrong' })));
    const none = await both(async (api) => await api.get(path));

    assert.deepEqual(right.ours, right.theirs);
    assert.deepEqual([wrong.ours.status, none.ours.status], [401, 500]);
    assert.deepEqual([wrong.theirs.status, none.theirs.status], [401, 500]);
  });

  test('GET /distribution of a missing image', async () => {
    const { ours } = await both(async (api) => await api.get(`/distribution/${PLAIN}/nope/json`));

    assert.equal(ours.status, 404);
    assert.match((ours.body as Message).message ?? '', /not found|does not exist/);
  });

  const wanted = ['', 'linux/amd64', 'arm64', 'linux/arm64/v8', 'linux/arm64/v9', 'windows/amd64', 'odd'];

  async function pullAndCreate(api: Api, platform: string): Promise<Answer> {
    const { status } = await api.post(`/images/create?fromImage=${PLAIN}/image&tag=both&platform=${platform}`);
    const created: number[] = [];
    for (const each of wanted) {
      const body = { Image: `${PLAIN}/image:both` };
      const answer = await api.post<{ Id: string }>(`/containers/create?platform=${each}`, body);
      created.push(answer.status);
      if (answer.status === 201) await api.delete(`/containers/${answer.body.Id}`);
    }
    return { status, body: created };
  }

  test('POST /images/create?platform= pulls the image of that platform, and a creation wants it', async () => {
    const results: unknown[] = [];
    for (const platform of ['', 'linux/arm64/v8', 'linux/s390x', 'odd']) {
      const { ours, theirs } = await both(async (api) => await pullAndCreate(api, platform));
      assert.deepEqual(ours.status === 200, theirs.status === 200);
      // dockerd 20.10 loses the other platform.
      if (platform === '') assert.deepEqual(ours, theirs);
      results.push(ours.body);
    }

    const both64 = [201, 201, 201, 201, 404, 404, 400];
    assert.deepEqual(results, [[201, 201, 404, 404, 404, 404, 400], both64, both64, both64]);
  });

  test('an import has the platform that the client names', async () => {
    const { engine } = beside;

    const { status } = await engine.post(
      '/images/create?fromSrc=-&repo=imported&platform=linux/arm64',
      new TarWriter().add({ name: 'file' }).end(),
      { headers: { 'Content-Type': 'application/x-tar' } },
    );

    const { body } = await engine.get<{ Os: string; Architecture: string }>('/images/imported/json');
    assert.deepEqual([status, body.Os, body.Architecture], [200, 'linux', 'arm64']);
  });
});

function entry({ mediaType, digest, size }: { mediaType: string; digest: string; size: number }): object {
  return { mediaType, digest, size };
}
