import { TarWriter } from '../archives/tar-writer.ts';
import { pluginConfig } from '../plugins/plugin-files.ts';
import { filters, OF_MEMBERS, type StatusRows, TAR, unknown, UPGRADE } from './row.ts';

/** The archive of a plugin. */
const plugin = new TarWriter()
  .add({ name: 'config.json', content: JSON.stringify(pluginConfig('VolumeDriver')) })
  .add({ name: 'rootfs/', type: 'directory' })
  .end();

/** Its permissions. */
const granted = [
  { Name: 'network', Value: ['host'] },
  { Name: 'mount', Value: ['/etc/hostname'] },
  { Name: 'device', Value: ['/dev/null'] },
  { Name: 'capabilities', Value: ['CAP_SYS_ADMIN'] },
];

const H2C = { Connection: 'Upgrade', Upgrade: 'h2c' };

/** Endpoints of versions above 1.24. */
export const newerRows = {
  'GET /containers/stats': {
    statuses: [200, 400, 500],
    cases: [
      [400, 'an interval below a second', '/containers/stats?interval=0'],
      [200, 'live', '/containers/stats'],
    ],
  },
  'GET /containers/{id}/files': {
    statuses: [200, 400, 404, 500],
    cases: [
      [200, 'the root', '/containers/running/files'],
      [200, 'a folder', '/containers/running/files?path=/etc'],
      [400, 'a file', '/containers/running/files?path=/etc/passwd'],
      [404, 'there is no such folder', '/containers/running/files?path=/nowhere'],
      [404, 'there is no such container', '/containers/nobody/files'],
    ],
  },
  'GET /containers/{id}/usage': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'nothing is recorded without a page', '/containers/running/usage'],
      [404, 'there is no such container', '/containers/nobody/usage'],
    ],
  },
  'GET /volumes/{name}/files': {
    statuses: [200, 400, 404, 500],
    cases: [
      [200, 'the root', '/volumes/used/files'],
      [404, 'there is no such folder', '/volumes/used/files?path=/nowhere'],
      [404, 'there is no such volume', '/volumes/nope/files'],
    ],
    never: { 400: 'it takes a file: engine/containers/archive/volume-files.root.test.ts' },
  },
  'GET /volumes/{name}/archive': {
    statuses: [200, 400, 404, 500],
    cases: [
      [200, 'the root', '/volumes/used/archive?path=/', { type: TAR }],
      [400, 'no path', '/volumes/used/archive'],
      [404, 'there is no such file', '/volumes/used/archive?path=/nowhere'],
      [404, 'there is no such volume', '/volumes/nope/archive?path=/'],
    ],
  },
  'GET /exec/{id}/ws': {
    statuses: [400, 404, 409],
    cases: [[400, 'no WebSocket', '/exec/{exec}/ws']],
    never: {
      200: 'engine/exec/websocket.root.test.ts',
      404: 'it takes a handshake: engine/exec/websocket.root.test.ts',
      409: 'it takes a handshake: engine/exec/websocket.root.test.ts',
    },
  },
  'POST /page': { statuses: [200], cases: [[200, 'an invitation', '/page']] },
  'DELETE /page': { statuses: [204], cases: [[204, 'all sessions end', '/page']] },
  'POST /containers/prune': {
    statuses: [200, 409, 500],
    cases: [
      [400, 'an unknown filter', `/containers/prune?${filters({ colour: ['red'] })}`],
      [400, 'a time that is none', `/containers/prune?${filters({ until: ['soon'] })}`],
      [400, 'it came with 1.25', '/v1.24/containers/prune'],
      [200, 'all that do not run', '/containers/prune'],
    ],
    never: { 409: 'it takes a second prune during the first: engine/lib/concurrency/one-at-a-time.test.ts' },
  },
  'POST /images/prune': {
    statuses: [200, 500],
    cases: [
      [400, 'a filter that is not a boolean', `/images/prune?${filters({ dangling: ['perhaps'] })}`],
      [400, 'it came with 1.25', '/v1.24/images/prune'],
      [200, 'all without a name', '/images/prune'],
    ],
  },
  'POST /volumes/prune': {
    statuses: [200, 409, 500],
    cases: [
      [400, 'a filter of others', `/volumes/prune?${filters({ until: ['1h'] })}`],
      [400, 'a filter that is not a boolean', `/volumes/prune?${filters({ all: ['perhaps'] })}`],
      [400, 'it came with 1.25', '/v1.24/volumes/prune'],
      [200, 'all that no container has', '/volumes/prune'],
    ],
    never: { 409: 'it takes a second prune during the first' },
  },
  'POST /networks/prune': {
    statuses: [200, 409, 500],
    cases: [
      [400, 'several times', `/networks/prune?${filters({ until: ['1h', '2h'] })}`],
      [400, 'it came with 1.25', '/v1.24/networks/prune'],
      [200, 'all that no container is in', '/networks/prune'],
    ],
    never: { 409: 'it takes a second prune during the first' },
  },
  'GET /system/df': {
    statuses: [200, 500],
    cases: [
      [400, 'it came with 1.25', '/v1.24/system/df'],
      [200, 'all objects', '/system/df'],
      [200, 'some objects', '/system/df?type=volume&type=build-cache'],
      [400, 'an unknown kind of objects', '/system/df?type=socks'],
    ],
  },
  'GET /distribution/{name}/json': {
    statuses: [200, 401, 500],
    cases: [
      [400, 'it came with 1.30', '/v1.29/distribution/busybox/json'],
      [400, 'an invalid name', '/distribution/UPPER/json'],
      [404, 'the registry has no such image', '/distribution/127.0.0.1:5000/nope/json'],
      [500, 'no registry answers there', '/distribution/127.0.0.1:5009/busybox/json'],
      [200, 'an image', '/distribution/127.0.0.1:5000/small:1/json'],
    ],
    never: { 401: 'it takes a registry with users: engine/images/transfers/distribution.root.test.ts' },
  },
  'POST /build/prune': {
    statuses: [200, 409, 500],
    cases: [
      [400, 'an unknown filter', `/build/prune?${filters({ colour: ['red'] })}`],
      [400, 'a negative size', '/build/prune?keep-storage=-1'],
      [400, 'a size that is no number', '/build/prune?reserved-space=much'],
      [400, 'it came with 1.31', '/v1.30/build/prune'],
      [200, 'all caches', '/build/prune?all=1'],
    ],
    never: { 409: 'it takes a second prune during the first' },
  },
  'GET /secrets': {
    statuses: [200, 500, 503],
    never: { 200: OF_MEMBERS },
    cases: [
      [400, 'an unknown filter', `/secrets?${filters({ colour: ['red'] })}`],
      [400, 'it came with 1.25', '/v1.24/secrets'],
      [503, 'the node is in no cluster', '/secrets'],
    ],
  },
  'POST /secrets/create': {
    statuses: [201, 400, 409, 500, 503],
    never: { 201: OF_MEMBERS, 409: OF_MEMBERS },
    cases: [
      [400, 'it came with 1.25', '/v1.24/secrets/create'],
      [503, 'the node is in no cluster', '/secrets/create', { body: { Name: 'one', Data: 'eA==' } }],
    ],
  },
  'GET /secrets/{id}': {
    statuses: [200, 404, 500, 503],
    never: { 200: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [[503, 'the node is in no cluster', '/secrets/one']],
  },
  'DELETE /secrets/{id}': {
    statuses: [204, 404, 500, 503],
    never: { 204: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [[503, 'the node is in no cluster', '/secrets/one']],
  },
  'POST /secrets/{id}/update': {
    statuses: [200, 400, 404, 500, 503],
    never: { 200: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [
      [400, 'a version that is none', '/secrets/one/update?version=x', { body: {} }],
      [503, 'the node is in no cluster', '/secrets/one/update?version=1', { body: {} }],
    ],
  },
  'GET /configs': {
    statuses: [200, 500, 503],
    never: { 200: OF_MEMBERS },
    cases: [
      [400, 'an unknown filter', `/configs?${filters({ colour: ['red'] })}`],
      [400, 'it came with 1.30', '/v1.29/configs'],
      [503, 'the node is in no cluster', '/configs'],
    ],
  },
  'POST /configs/create': {
    statuses: [201, 400, 409, 500, 503],
    never: { 201: OF_MEMBERS, 409: OF_MEMBERS },
    cases: [
      [400, 'it came with 1.30', '/v1.29/configs/create'],
      [503, 'the node is in no cluster', '/configs/create', { body: { Name: 'one', Data: 'eA==' } }],
    ],
  },
  'GET /configs/{id}': {
    statuses: [200, 404, 500, 503],
    never: { 200: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [[503, 'the node is in no cluster', '/configs/one']],
  },
  'DELETE /configs/{id}': {
    statuses: [204, 404, 500, 503],
    never: { 204: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [[503, 'the node is in no cluster', '/configs/one']],
  },
  'POST /configs/{id}/update': {
    statuses: [200, 400, 404, 500, 503],
    never: { 200: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [
      [400, 'a version that is none', '/configs/one/update?version=x', { body: {} }],
      [503, 'the node is in no cluster', '/configs/one/update?version=1', { body: {} }],
    ],
  },
  'GET /services/{id}/logs': {
    statuses: [200, 404, 500, 503],
    never: { 200: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [
      [400, 'it came with 1.29', '/v1.28/services/x/logs?stdout=1'],
      [503, 'the node is in no cluster', '/services/x/logs?stdout=1'],
    ],
  },
  'GET /tasks/{id}/logs': {
    statuses: [200, 404, 500, 503],
    never: { 200: OF_MEMBERS, 404: OF_MEMBERS },
    cases: [
      [400, 'it came with 1.29', '/v1.28/tasks/x/logs?stdout=1'],
      [503, 'the node is in no cluster', '/tasks/x/logs?stdout=1'],
    ],
  },
  'GET /swarm/unlockkey': {
    statuses: [200, 500, 503],
    never: { 200: OF_MEMBERS },
    cases: [
      [400, 'it came with 1.25', '/v1.24/swarm/unlockkey'],
      [503, 'the node is in no cluster', '/swarm/unlockkey'],
    ],
  },
  'POST /swarm/unlock': {
    statuses: [200, 401, 409, 500, 503],
    never: { 200: OF_MEMBERS, 401: OF_MEMBERS, 409: OF_MEMBERS },
    cases: [
      [400, 'it came with 1.25', '/v1.24/swarm/unlock'],
      [503, 'the node is in no cluster', '/swarm/unlock', { body: { UnlockKey: 'x' } }],
    ],
  },
  'POST /build/cancel': {
    statuses: [200, 400, 500],
    cases: [
      [400, 'no id', '/build/cancel'],
      [200, 'no such build', '/build/cancel?id=nope'],
    ],
  },
  'POST /grpc': {
    statuses: [101, 400, 500],
    cases: [
      [101, 'with an upgrade', '/grpc', { headers: H2C, type: '' }],
      [400, 'without', '/grpc'],
      [400, 'an upgrade to something else', '/grpc', { headers: UPGRADE }],
      [400, 'it came with 1.39', '/v1.38/grpc', { headers: H2C }],
    ],
  },
  'POST /session': {
    statuses: [101, 400, 500],
    cases: [
      [101, 'with an upgrade', '/session', { headers: { ...H2C, 'X-Docker-Expose-Session-Uuid': 's' }, type: '' }],
      [400, 'no id', '/session', { headers: H2C }],
      [400, 'without an upgrade', '/session', { headers: { 'X-Docker-Expose-Session-Uuid': 's' } }],
      [400, 'it came with 1.31', '/v1.30/session', { headers: H2C }],
    ],
  },
  'PUT /volumes/{name}': {
    statuses: [200, 400, 404, 500, 503],
    never: { 200: 'not built: a manager answers 501', 400: 'not built yet', 404: 'not built yet' },
    cases: [
      [503, 'the node is in no cluster', '/volumes/used?version=1', { body: { Spec: {} } }],
      [400, 'it came with 1.42', '/v1.41/volumes/used?version=1', { body: { Spec: {} } }],
    ],
  },
  'GET /images/{name}/attestations': {
    statuses: [200, 400, 404, 500],
    cases: [
      [400, 'it came with 1.55', '/v1.54/images/busybox/attestations'],
      [400, 'a platform that is none', '/images/busybox/attestations?platform=linux'],
      [
        404,
        'the image has another platform',
        '/images/busybox/attestations?platform={"os":"linux","architecture":"x"}',
      ],
      [200, 'none', '/images/busybox/attestations'],
      unknown('/images/library/a/nope:1/attestations'),
    ],
  },
  'GET /plugins/privileges': {
    statuses: [200, 500],
    cases: [
      [400, 'it came with 1.25', '/v1.24/plugins/privileges?remote=127.0.0.1:5000/plugin'],
      [400, 'no name', '/plugins/privileges'],
      [404, 'the registry does not have it', '/plugins/privileges?remote=127.0.0.1:5000/nope'],
      [200, 'its permissions', '/plugins/privileges?remote=127.0.0.1:5000/plugin'],
    ],
  },
  'POST /plugins/create': {
    statuses: [204, 500],
    cases: [
      [400, 'it came with 1.25', '/v1.24/plugins/create?name=made', { body: plugin }],
      [400, 'no name', '/plugins/create', { body: plugin }],
      [400, 'an invalid name', '/plugins/create?name=UPPER', { body: plugin }],
      [400, 'no archive', '/plugins/create?name=made', { body: Buffer.alloc(1024, 'x') }],
      [400, 'an archive without files', '/plugins/create?name=made', { body: Buffer.alloc(1024) }],
      [204, 'made', '/plugins/create?name=made', { body: plugin, type: '' }],
      [409, 'it is there', '/plugins/create?name=made', { body: plugin }],
    ],
  },
  'GET /plugins/{name}/json': {
    statuses: [200, 404, 500],
    cases: [[200, 'a plugin', '/plugins/made/json', { since: '1.25' }], unknown('/plugins/a/b/json')],
  },
  'POST /plugins/{name}/set': {
    statuses: [204, 404, 500],
    cases: [
      [400, 'it came with 1.25', '/v1.24/plugins/made/set', { body: ['PLUGIN_MODE=x'] }],
      [400, 'a setting that is none', '/plugins/made/set', { body: ['NOPE=x'] }],
      [400, 'a setting that is fixed', '/plugins/made/set', { body: ['PLUGIN_KINDS=x'] }],
      [400, 'a name without a setting', '/plugins/made/set', { body: ['=x'] }],
      [400, 'no list', '/plugins/made/set', { body: {} }],
      [204, 'set', '/plugins/made/set', { body: ['PLUGIN_MODE='], type: '' }],
      unknown('/plugins/a/b/set', { body: [] }),
    ],
  },
  'POST /plugins/{name}/push': {
    statuses: [200, 404, 500],
    cases: [
      [400, 'it came with 1.25', '/v1.24/plugins/made/push'],
      [200, 'its stream tells the failure', '/plugins/made/push'],
      unknown('/plugins/a/b/push'),
    ],
  },
  'POST /plugins/{name}/upgrade': {
    statuses: [200, 404, 500],
    cases: [
      [400, 'it came with 1.26', '/v1.25/plugins/made/upgrade?remote=127.0.0.1:5000/plugin'],
      [400, 'no name', '/plugins/made/upgrade'],
      [400, 'permissions that were not granted', '/plugins/made/upgrade?remote=127.0.0.1:5000/plugin', { body: [] }],
      [404, 'the registry does not have it', '/plugins/made/upgrade?remote=127.0.0.1:5000/nope', { body: [] }],
      [200, 'upgraded', '/plugins/made/upgrade?remote=127.0.0.1:5000/plugin', { body: granted }],
      unknown('/plugins/a/b/upgrade?remote=127.0.0.1:5000/plugin', { body: [] }),
    ],
  },
} as const satisfies StatusRows;
