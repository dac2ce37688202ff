import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { isSupported, versionOfUrl, versionRefusal, type ApiVersions } from './api-version.ts';

const versions: ApiVersions = { min: '1.12', max: '1.30', fallback: '1.24' };

suite('the version in a path', () => {
  const cases: [written: string, refusal: 'old' | 'new' | undefined][] = [
    ['1.12', undefined],
    ['1.30', undefined],
    ['01.024', undefined],
    ['1.30.0', undefined],
    ['1.24.1', undefined],
    ['1.9', 'old'],
    ['1.11', 'old'],
    ['1', 'old'],
    ['1.', 'old'],
    ['0.30', 'old'],
    ['1.31', 'new'],
    ['1.30.1', 'new'],
    ['1.100', 'new'],
    ['2', 'new'],
    ['2.1', 'new'],
  ];
  for (const [written, refusal] of cases) {
    test(`${written} is ${refusal === undefined ? 'served' : `too ${refusal}`}`, () => {
      assert.equal(isSupported(written, versions), refusal === undefined);
      if (refusal !== undefined) assert.match(versionRefusal(written, versions), new RegExp(`is too ${refusal}\\.`));
    });
  }
});

test('a request without a version speaks the default', () => {
  const urls = ['/v1.25/info', '/v1.12', '/v1.012/x?y', '/v1.24?x', '/info', '/volumes/v1.20', '/version'];

  assert.deepEqual(
    urls.map((url) => versionOfUrl(url, versions)),
    ['1.25', '1.12', '1.12', '1.24', '1.24', '1.24', '1.24'],
  );
});
