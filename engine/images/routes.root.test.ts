import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, watch } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive, busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const engine = await TestEngine.start();
after(async () => await engine[Symbol.asyncDispose]());

const refusals: readonly (readonly [
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  status: number,
  message: RegExp,
])[] = [
  ['GET', '/images/nope/json', 404, /^No such image: nope:latest$/],
  ['GET', '/images/r.io:5000/a/b:1/json', 404, /^No such image: r.io:5000\/a\/b:1$/],
  ['GET', '/images/busybox/json?platform=linux', 400, /^failed to parse platform/],
  ['GET', '/images/busybox/history?platform={"os":1}', 400, /^failed to parse platform/],
  ['GET', '/images/busybox/json?platform={"os":"linux","architecture":"s390x"}', 404, /does not match the spec/],
  ['GET', '/images/busybox/history?platform={"os":"linux","architecture":"s390x"}', 404, /does not match the spec/],
  ['GET', '/images/nope/history', 404, /^No such image/],
  ['GET', '/images/nope/get', 404, /^No such image/],
  ['GET', '/images/UP/json', 400, /^invalid reference format: repository name must be lowercase$/],
  ['GET', '/images/json?filters={"dangling":["maybe"]}', 400, /^Invalid filter 'dangling=/],
  ['GET', '/images/json?filters={"what":["x"]}', 400, /^Invalid filter 'what'$/],
  ['GET', '/images/json?filters={"before":["nope"]}', 404, /^No such image/],
  ['GET', '/images/json?filters=x', 400, /filters/],
  ['POST', '/images/nope/tag?repo=x', 404, /^No such image: nope:latest$/],
  ['POST', '/images/busybox/tag?repo=UP', 400, /^invalid reference format/],
  ['POST', '/images/busybox/tag', 400, /^invalid reference format$/],
  ['POST', '/images/busybox/tag?repo=a&tag=b@c', 400, /^invalid tag format$/],
  ['POST', `/images/busybox/tag?repo=a@sha256:${'a'.repeat(64)}`, 400, /^refusing to create a tag with a digest/],
  ...['sha256:x', 'library/sha256', 'docker.io/library/sha256:y'].map(
    (name) => ['POST', `/images/busybox/tag?repo=${name}`, 400, /^refusing to create an ambiguous tag/] as const,
  ),
  ['POST', '/commit?container=x&repo=sha256&tag=y', 400, /^refusing to create an ambiguous tag/],
  ['POST', '/build?t=sha256:y', 400, /^refusing to create an ambiguous tag/],
  ['POST', '/images/create?fromSrc=-&repo=sha256:x', 400, /^refusing to create an ambiguous tag/],
  ['POST', '/images/create?fromImage=sha256&tag=x', 400, /^refusing to create an ambiguous tag/],
  ['POST', `/images/create?fromSrc=-&repo=a@sha256:${'a'.repeat(64)}&tag=b`, 400, /^cannot import digest reference$/],
  ['POST', '/images/create', 400, /fromImage or fromSrc is required/],
  ['POST', '/images/create?fromImage=scratch', 400, /^'scratch' is a reserved name$/],
  ['POST', '/images/create?fromImage=127.0.0.1:9/x&tag=1', 500, /^Get "http:.*connection refused$/],
  ['POST', '/images/create?fromImage=busybox&tag=a/b', 400, /^invalid tag format$/],
  ['POST', '/images/create?fromSrc=ftp://x/y', 400, /neither - nor a URL/],
  ['POST', '/images/create?fromSrc=http://127.0.0.1:1/y', 500, /cannot be downloaded/],
  ['POST', '/images/create?fromSrc=-&changes=RUN%20x', 400, /^run is not a valid change command$/],
  ['POST', '/images/busybox/push', 400, /^Bad parameters and missing X-Registry-Auth: EOF$/],
  ['DELETE', '/images/nope', 404, /^No such image: nope:latest$/],
];

for (const [method, path, status, message] of refusals) {
  test(`${method} ${path} answers ${status}`, async () => {
    const answer = await engine.request<{ message: string }>(method, encodeURI(decodeURI(path)));

    assert.equal(answer.status, status);
    assert.deepEqual(Object.keys(answer.body), ['message']);
    assert.match(answer.body.message, message);
  });
}

test('a bad archive is answered with its reason, also when most of it is still to come', async () => {
  const hostile = new TarWriter().add({ name: '../etc/passwd', content: Buffer.alloc(30_000_000) }).end();

  const loaded = await engine.post<{ message: string }>('/images/load', hostile);
  const imported = await engine.post<{ message: string }>('/images/create?fromSrc=-&repo=bad', hostile);

  for (const { status, body } of [loaded, imported]) {
    assert.equal(status, 400);
    assert.match(body.message, /"\.\.\/etc\/passwd" leads out of the root/);
  }
});

test('a client that hangs up in its upload leaves nothing behind', async () => {
  const archive = imageArchive(new TarWriter().add({ name: 'x', content: Buffer.alloc(5_000_000) }).end(), ['half:1']);
  const arriving = join(engine.dataRoot, 'blobs/arriving');
  const upload = request({ socketPath: engine.socketPath, path: '/v1.24/images/load', method: 'POST' });
  upload.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    upload.write(archive.subarray(0, 3_000_000), () => resolve());
  });
  await becomes(arriving, (names) => names.length > 0);

  upload.destroy();

  await becomes(arriving, (names) => names.length === 0);
  assert.equal((await engine.get('/images/half:1/json')).status, 404);
});

test('a tag parameter takes the place of a tag or digest behind the name', async () => {
  const digest = `sha256:${'a'.repeat(64)}`;

  for (const repo of ['placed:one', `placed@${digest}`, `placed:one@${digest}`]) {
    assert.equal((await engine.post(`/images/busybox/tag?repo=${repo}&tag=two`)).status, 201);
    const { body: listed } = await engine.get<{ RepoTags: string[] }[]>('/images/json?filter=placed');

    assert.deepEqual(
      listed.flatMap(({ RepoTags }) => RepoTags.filter((tag) => tag.startsWith('placed'))),
      ['placed:two'],
    );
    await engine.delete('/images/placed:two');
  }
});

test('an imported image runs, is listed by its name, and is deleted', async () => {
  const query = new URLSearchParams({ fromSrc: '-', repo: 'imported/app:1', message: 'made here' });
  query.append('changes', 'CMD ["echo", "from the image"]');
  query.append('changes', 'LABEL a=b');
  const { body: created } = await engine.post<{ status: string }>(`/images/create?${query.toString()}`, busyboxLayer());

  const id = await engine.run([], { Image: 'imported/app:1', Cmd: null, HostConfig: { NetworkMode: 'none' } });
  await engine.wait(id);
  assert.equal((await engine.output(id)).stdout, 'from the image\n');
  const refused = await engine.delete<{ message: string }>('/images/imported/app:1');
  assert.equal(refused.status, 409);
  await engine.delete(`/containers/${id}`);
  const filters = encodeURIComponent('{"label":{"a=b":true}}');
  const { body: listed } = await engine.get<{ Id: string; RepoTags: string[] }[]>(`/images/json?filters=${filters}`);
  assert.deepEqual(
    listed.map(({ Id, RepoTags }) => [Id, RepoTags]),
    [[created.status, ['imported/app:1']]],
  );

  const { body: removed } = await engine.delete('/images/imported/app:1');
  assert.deepEqual(removed, [{ Untagged: 'imported/app:1' }, { Deleted: created.status }]);
});

test('the docker command line loads, tags, saves and removes', async () => {
  const file = join(engine.directory, 'image.tar');
  const copy = join(engine.directory, 'copy.tar');
  const layer = new TarWriter().add({ name: 'only', content: 'x' }).end();
  execFileSync('tee', [file], { input: imageArchive(layer, ['cli:1']), stdio: ['pipe', 'ignore', 'inherit'] });

  assert.equal((await engine.docker('load', '-i', file)).stdout, 'Loaded image: cli:1\n');
  assert.equal((await engine.docker('tag', 'cli:1', 'cli:2')).code, 0);
  assert.equal((await engine.docker('save', '-o', copy, 'cli')).code, 0);
  assert.match(
    (await engine.docker('rmi', 'cli:1', 'cli:2')).stdout,
    /^Untagged: cli:1\nUntagged: cli:2\nDeleted: sha256:/,
  );
  assert.equal((await engine.docker('load', '-i', copy)).stdout, 'Loaded image: cli:1\nLoaded image: cli:2\n');
  assert.match((await engine.docker('images', 'cli')).stdout, /cli +1 [^]*cli +2 /);
  assert.equal((await engine.docker('rmi', '-f', 'cli:1', 'cli:2')).code, 0);
});

test('quiet leaves only the confirmation, otherwise progress comes first', async () => {
  await engine.delete('/images/busybox?force=1');
  const noisy = await engine.post('/images/load', await busyboxArchive());
  await engine.delete('/images/busybox?force=1');
  const quiet = await engine.post('/images/load?quiet=1', await busyboxArchive());

  assert.match(
    noisy.raw.toString(),
    /^{"status":"Loading layer","progressDetail":{"current":\d+,"total":\d+},"progress":"\[=+>\] /,
  );
  assert.equal(quiet.raw.toString(), '{"stream":"Loaded image: busybox:latest\\n"}\r\n');
});

/** Waits until the names in a folder are as wanted. */
async function becomes(folder: string, isRight: (names: string[]) => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (isRight(readdirSync(folder))) resolve();
  };
  const watcher = watch(folder, look);
  look();
  await promise;
  watcher.close();
}
