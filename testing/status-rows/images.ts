import { filters, TAR, unknown, type StatusRows } from './row.ts';

/** A context with nothing but a Buildfile: one block of a header, one of content. */
function contextOf(file: string): Buffer {
  const archive = Buffer.alloc(4 * 512);
  archive.write('Dockerfile');
  archive.write('0000644\0' + '0000000\0'.repeat(2), 100);
  archive.write(`${file.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0${' '.repeat(8)}0`, 124);
  const sum = archive.reduce((total, byte) => total + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  archive.write(file, 512);
  return archive;
}

export const imageRows = {
  'GET /images/json': {
    statuses: [200, 500],
    cases: [
      [200, 'a list', '/images/json?digests=1'],
      [400, 'an unknown filter', `/images/json?${filters({ colour: ['red'] })}`],
      [400, 'a filter that is not a boolean', `/images/json?${filters({ dangling: ['perhaps'] })}`],
      unknown(`/images/json?${filters({ before: ['nope'] })}`),
    ],
  },
  'POST /build': {
    statuses: [200, 500],
    cases: [
      [200, 'reported in the stream', '/build', { body: contextOf('FROM busybox\nRUN exit 3') }],
      [400, 'no Buildfile', '/build', { body: Buffer.alloc(1024) }],
      [400, 'no archive', '/build', { body: Buffer.alloc(1024, 'x') }],
      [400, 'an unknown instruction', '/build', { body: contextOf('FROM busybox\nJUMP') }],
      [400, 'an invalid name', '/build?t=UPPER', { body: contextOf('FROM busybox') }],
      [400, 'no map', '/build?buildargs=1', { body: contextOf('FROM busybox') }],
      [400, 'BuildKit', '/build?version=2', { body: contextOf('FROM busybox') }],
      [400, 'an unknown builder', '/build?version=3', { body: contextOf('FROM busybox') }],
      [400, 'squashing', '/build?squash=1', { body: contextOf('FROM busybox') }],
      [400, 'an output that is no image', '/build?outputs=[{"Type":"tar"}]', { body: contextOf('FROM busybox') }],
    ],
  },
  'POST /images/create': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'an import', '/images/create?fromSrc=-&repo=imported', { body: Buffer.alloc(1024) }],
      [400, 'neither source', '/images/create'],
      [400, 'an invalid name', '/images/create?fromSrc=-&repo=UPPER', { body: Buffer.alloc(1024) }],
      [400, 'an unknown instruction', '/images/create?fromSrc=-&changes=JUMP', { body: Buffer.alloc(1024) }],
      [400, 'a source that is not an address', '/images/create?fromSrc=ftp://there/x'],
      [400, 'no archive', '/images/create?fromSrc=-', { body: Buffer.alloc(1024, 'x') }],
      [500, 'no answer from there', '/images/create?fromSrc=http://127.0.0.1:9/x'],
      [404, 'the registry has no such image', '/images/create?fromImage=127.0.0.1:5000/x&tag=1'],
      [500, 'no registry answers there', '/images/create?fromImage=127.0.0.1:9/x&tag=1'],
      [400, 'a pull of an invalid name', '/images/create?fromImage=UPPER'],
    ],
  },
  'GET /images/{name}/json': {
    statuses: [200, 404, 500],
    cases: [[200, 'an image', '/images/busybox:latest/json'], unknown('/images/library/a/nope:1/json')],
  },
  'GET /images/{name}/history': {
    statuses: [200, 404, 500],
    cases: [[200, 'its steps', '/images/busybox/history'], unknown('/images/nope/history')],
  },
  'POST /images/{name}/push': {
    statuses: [200, 404, 500],
    never: { 404: 'a missing image is reported in the stream, as in dockerd' },
    cases: [
      [200, 'reported in the stream', '/images/localhost:5000/a/b/push', { headers: { 'X-Registry-Auth': 'e30=' } }],
      [400, 'no credentials, not even empty ones', '/images/busybox/push'],
      [400, 'an invalid tag', '/images/busybox/push?tag=a/b', { headers: { 'X-Registry-Auth': 'e30=' } }],
    ],
  },
  'POST /images/{name}/tag': {
    statuses: [201, 400, 404, 409, 500],
    never: { 409: 'a name moves to the image, as in dockerd' },
    cases: [
      [201, 'tagged', '/images/busybox/tag?repo=tagged&tag=v1', { type: '' }],
      [400, 'no name', '/images/busybox/tag'],
      [400, 'an invalid name', '/images/busybox/tag?repo=UPPER'],
      [400, 'an invalid tag', '/images/busybox/tag?repo=fine&tag=a/b'],
      unknown('/images/nope/tag?repo=fine'),
    ],
  },
  'DELETE /images/{name}': {
    statuses: [200, 404, 409, 500],
    cases: [
      [200, 'a name less', '/images/to-untag'],
      unknown('/images/nope'),
      [409, 'a container runs on it', '/images/{image}?force=1'],
      [409, 'a container was made of it', '/images/unused-name'],
    ],
  },
  'GET /images/search': {
    statuses: [200, 500],
    cases: [
      [200, 'repositories', '/images/search?term=127.0.0.1:5010/busybox'],
      [400, 'no whole number', '/images/search?term=x&limit=many'],
      [400, 'too many', '/images/search?term=x&limit=101'],
      [400, 'no such filter', '/images/search?term=x&filters={"nope":["1"]}'],
      [500, 'no index answers there', '/images/search?term=127.0.0.1:9/x'],
    ],
  },
  'GET /images/{name}/get': {
    statuses: [200, 500],
    cases: [[200, 'an archive', '/images/busybox/get', { type: TAR }], unknown('/images/nope/get')],
  },
  'GET /images/get': {
    statuses: [200, 500],
    cases: [[200, 'an archive', '/images/get?names=busybox', { type: TAR }], unknown('/images/get?names=nope')],
  },
  'POST /images/load': {
    statuses: [200, 500],
    cases: [
      [200, 'loaded', '/images/load?quiet=1', { body: 'busybox' }],
      [400, 'no archive', '/images/load', { body: Buffer.alloc(1024, 'x') }],
      [400, 'an archive without images', '/images/load', { body: Buffer.alloc(1024) }],
    ],
  },
  'POST /commit': {
    statuses: [201, 404, 500],
    cases: [
      [201, 'committed', '/commit?container=running&pause=0', { body: {} }],
      [400, 'an invalid name', '/commit?container=running&repo=UPPER'],
      [400, 'an unknown instruction', '/commit?container=running&changes=JUMP'],
      [400, 'no text', '/commit?container=running', { body: { Image: 1 } }],
      unknown('/commit?container=nope'),
    ],
  },
  'POST /auth': {
    statuses: [200, 204, 500],
    never: { 204: 'there is always an answer' },
    cases: [
      [200, 'accepted', '/auth', { body: { username: 'a', password: 'b', serveraddress: '127.0.0.1:5000' } }],
      [500, 'no registry answers there', '/auth', { body: { serveraddress: '127.0.0.1:9' } }],
      [400, 'no address', '/auth', { body: { serveraddress: '???' } }],
      [400, 'no text', '/auth', { body: { username: [] } }],
    ],
  },
} as const satisfies StatusRows;
