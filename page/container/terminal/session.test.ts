import assert from 'node:assert/strict';
import { test } from 'node:test';

import { socketUrl } from './session.ts';

test('a shell connects over TLS where its page is over TLS, and below the path of its session', () => {
  const rows = [
    ['http://127.0.0.1:9000/abc/#/containers', 'ws://127.0.0.1:9000/abc/api/v1.51/exec/1/ws'],
    ['https://box.example:9443/abc/#/x', 'wss://box.example:9443/abc/api/v1.51/exec/1/ws'],
  ] as const;

  for (const [page, url] of rows) assert.equal(socketUrl('/exec/1/ws', page).href, url);
});
