import { FRAMED, UPGRADE, RAW, TEXT, unknown, type StatusRows } from './row.ts';

const SOCKET = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

export const containerStreamRows = {
  'GET /containers/{id}/logs': {
    statuses: [101, 200, 404, 500],
    cases: [
      [101, 'with an upgrade', '/containers/running/logs?stdout=1', { headers: UPGRADE, ...FRAMED }],
      [200, 'without', '/containers/running/logs?stdout=1', FRAMED],
      [400, 'neither stream', '/containers/running/logs'],
      [400, 'an invalid time', '/containers/running/logs?stdout=1&since=yesterday'],
      unknown('/containers/nope/logs?stdout=1'),
      [500, 'its log driver keeps nothing', '/containers/silent/logs?stdout=1'],
    ],
  },
  'POST /containers/{id}/resize': {
    statuses: [200, 404, 500],
    cases: [
      [200, 'resized', '/containers/terminal/resize?h=20&w=60', { type: TEXT }],
      [400, 'no width', '/containers/terminal/resize?h=20'],
      [400, 'an invalid height', '/containers/terminal/resize?h=tall&w=60'],
      unknown('/containers/nope/resize?h=20&w=60'),
      [500, 'it does not run', '/containers/stopped/resize?h=20&w=60', { newer: 409 }],
    ],
  },
  'POST /containers/{id}/attach': {
    statuses: [101, 200, 400, 404, 409, 500],
    cases: [
      [101, 'with an upgrade', '/containers/running/attach?stream=1&stdout=1', { headers: UPGRADE, ...FRAMED }],
      [200, 'without', '/containers/running/attach?stream=1&stdout=1', RAW],
      [400, 'unknown keys', '/containers/running/attach?stream=1&stdout=1&detachKeys=ctrl-1'],
      [400, 'unknown keys with an upgrade', '/containers/running/attach?detachKeys=ctrl-1', { headers: UPGRADE }],
      unknown('/containers/nope/attach?stream=1&stdout=1'),
      unknown('/containers/nope/attach?stream=1&stdout=1', { headers: UPGRADE }),
      [409, 'it is paused', '/containers/paused/attach?stream=1&stdout=1'],
    ],
  },
  'GET /containers/{id}/attach/ws': {
    statuses: [200, 400, 404, 500],
    never: { 200: 'a WebSocket begins with 101' },
    cases: [
      [101, 'a WebSocket begins so', '/containers/running/attach/ws?stream=1&stdout=1', { headers: SOCKET, type: '' }],
      [400, 'unknown keys', '/containers/running/attach/ws?detachKeys=ctrl-1', { headers: SOCKET }],
      [400, 'no WebSocket', '/containers/running/attach/ws?stream=1&stdout=1'],
      unknown('/containers/nope/attach/ws?stream=1', { headers: SOCKET }),
    ],
  },
} as const satisfies StatusRows;
