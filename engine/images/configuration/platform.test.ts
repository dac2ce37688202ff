import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { goArchitecture } from './architecture.ts';
import { checkPlatform, fitsPlatform, parsePlatform, platformText } from './platform.ts';

suite('parsePlatform', () => {
  const cases: [text: string, read: string | undefined][] = [
    ['', undefined],
    ['linux', `linux/${goArchitecture()}`],
    ['linux/amd64', 'linux/amd64'],
    ['Linux/x86_64', 'linux/amd64'],
    ['aarch64', 'linux/arm64'],
    ['linux/armhf', 'linux/arm/v7'],
    ['linux/arm/v6', 'linux/arm/v6'],
    ['windows/amd64', 'windows/amd64'],
    ['plan9/odd', 'plan9/odd'],
  ];
  for (const [text, read] of cases) {
    test(`${text} is ${read ?? 'any platform'}`, () => {
      const platform = parsePlatform(text);
      assert.equal(platform === undefined ? undefined : platformText(platform), read);
    });
  }

  for (const text of ['odd', 'linux/amd64/v1/x', 'linux//v8', 'linux/am d64', '/']) {
    test(`${text} is refused`, () => assert.throws(() => parsePlatform(text), { kind: 'invalid' }));
  }
});

test('fitsPlatform: a missing variant fits every variant', () => {
  const arm = parsePlatform('linux/arm/v7')!;

  assert.equal(fitsPlatform(parsePlatform('linux/arm')!, { os: 'linux', architecture: 'arm', variant: 'v6' }), true);
  assert.equal(fitsPlatform(arm, { os: 'linux', architecture: 'arm' }), true);
  assert.equal(fitsPlatform(arm, { os: 'linux', architecture: 'arm', variant: 'v6' }), false);
  assert.throws(() => checkPlatform({ os: 'linux', architecture: 'amd64', variant: '' }, 'busybox', arm), {
    kind: 'notFound',
    message:
      /busybox was found but does not match the specified platform: wanted linux\/arm\/v7, actual: linux\/amd64$/,
  });
});
