import { TEXT, unknown, type StatusRows } from './row.ts';

export const pluginRows = {
  'GET /plugins': { statuses: [200, 500], cases: [[200, 'a list', '/plugins']] },
  'POST /plugins/pull': {
    statuses: [200, 500],
    cases: [
      [200, 'installed', '/plugins/pull?name=127.0.0.1:5000/plugin'],
      [500, 'it is there', '/plugins/pull?name=127.0.0.1:5000/plugin', { newer: 409 }],
      [500, 'no name', '/plugins/pull', { newer: 400 }],
      [500, 'an invalid name', '/plugins/pull?name=A/B', { newer: 400 }],
      [500, 'the registry does not have it', '/plugins/pull?name=127.0.0.1:5000/nope', { newer: 404 }],
    ],
  },
  'GET /plugins/{name}': {
    statuses: [200, 404],
    cases: [[200, 'a plugin', '/plugins/127.0.0.1:5000/plugin:latest'], unknown('/plugins/a/b:latest')],
  },
  'POST /plugins/{name}/enable': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'enabled', '/plugins/127.0.0.1:5000/plugin/enable', { type: TEXT }],
      [500, 'it is enabled', '/plugins/127.0.0.1:5000/plugin/enable', { newer: 409 }],
      unknown('/plugins/a/b/enable'),
    ],
  },
  'POST /plugins/{name}/disable': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'disabled', '/plugins/127.0.0.1:5000/plugin/disable', { type: '' }],
      [500, 'it is disabled', '/plugins/127.0.0.1:5000/plugin/disable', { newer: 409 }],
      unknown('/plugins/a/b/disable'),
    ],
  },
  'DELETE /plugins/{name}': {
    statuses: [200, 404, 500],
    cases: [[200, 'removed', '/plugins/127.0.0.1:5000/plugin', { type: '' }], unknown('/plugins/a/b')],
  },
} as const satisfies StatusRows;
