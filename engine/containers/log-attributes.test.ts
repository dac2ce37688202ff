import assert from 'node:assert/strict';
import { test } from 'node:test';

import { logAttributes } from './log-attributes.ts';
import type { Container } from './store.ts';

/** The fields that count here. */
function container(Config: Record<string, string>): Container {
  return {
    id: '0123456789abcdef',
    name: 'web',
    imageName: 'busybox',
    imageId: 'sha256:fedcba9876543210',
    config: { Labels: { who: 'me', where: 'here', 'io.x.y': '1' }, Env: ['FOO=a=b', 'FOOD=c', 'EMPTY='] },
    hostConfig: { LogConfig: { Type: 'json-file', Config } },
  } as unknown as Container;
}

test('log options choose labels, variables and the tag', async (t) => {
  const cases: [Record<string, string>, Record<string, string>][] = [
    [{}, {}],
    [{ labels: 'who,missing' }, { who: 'me' }],
    [{ 'labels-regex': '^wh' }, { who: 'me', where: 'here' }],
    [
      { labels: 'io.x.y', env: 'FOO' },
      { 'io.x.y': '1', FOO: 'a=b' },
    ],
    [{ 'env-regex': 'FOO|EMP' }, { FOO: 'a=b', FOOD: 'c', EMPTY: '' }],
    [{ tag: '{{.Name}}/{{.ID}} {{ .ImageName }} {{.Other}}' }, { tag: 'web/0123456789ab busybox {{.Other}}' }],
    [{ tag: '' }, {}],
  ];
  for (const [options, expected] of cases) {
    await t.test(JSON.stringify(options), () => {
      const attributes = logAttributes(container(options));

      assert.deepEqual(attributes, expected);
    });
  }
});
