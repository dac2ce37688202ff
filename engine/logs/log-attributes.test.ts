import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Container } from '../containers/store.ts';
import { attributesText, checkAttributes, logAttributes } from './log-attributes.ts';

/** The fields that count here. */
function container(Config: Record<string, string>): Container {
  return {
    id: '0123456789abcdef',
    name: 'web',
    imageName: 'busybox',
    imageId: 'sha256:fedcba9876543210',
    path: 'sh',
    args: ['-c', 'true'],
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
    [{ tag: '{{.Name}}/{{.ID}} {{ .ImageName | upper }}' }, { tag: 'web/0123456789ab BUSYBOX' }],
    [{ tag: '' }, {}],
  ];
  for (const [options, expected] of cases) {
    await t.test(JSON.stringify(options), () => {
      const attributes = logAttributes(container(options));

      assert.deepEqual(attributes, expected);
    });
  }
});

function labelled(Labels: Record<string, string>): Container {
  const { config, ...rest } = container({ 'labels-regex': '' });
  const LogConfig = { Type: 'json-file', Config: { labels: Object.keys(Labels).join() } };
  return { ...rest, config: { ...config, Labels }, hostConfig: { ...rest.hostConfig, LogConfig } };
}

test('they are written as dockerd 20.10 writes them: sorted, and with its escapes', () => {
  const text = attributesText(labelled({ 'z.l': 'x"y\u2028', FOO: 'a<b&c', 'a.l': 'é', empty: '', 9: 'n', 10: 't' }));

  assert.equal(text, String.raw`{"10":"t","9":"n","FOO":"a\u003cb\u0026c","a.l":"é","empty":"","z.l":"x\"y\u2028"}`);
});

test('nothing is written where nothing was chosen', () => {
  assert.equal(attributesText(container({})), '');
});

test('an empty key is not chosen by an option that is not set', () => {
  const { config, ...rest } = container({ env: 'FOO' });

  const attributes = logAttributes({ ...rest, config: { ...config, Labels: { '': 'x' } } });

  assert.deepEqual(attributes, { FOO: 'a=b' });
});

test('a tag that names an unknown field is refused', () => {
  assert.throws(() => checkAttributes(container({ tag: '{{.Nope}}' })), {
    kind: 'invalid',
    message: 'invalid tag: template: unknown field .Nope',
  });
});

test('more than the shim takes is refused', () => {
  checkAttributes(labelled({ long: 'x'.repeat(100 * 1024 - 11) }));

  assert.throws(() => checkAttributes(labelled({ long: 'x'.repeat(100 * 1024 - 10) })), { kind: 'invalid' });
});
