import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project, type Said } from './project.ts';

const FILE = [
  '# V the version',
  'ARG V=1',
  'ARG base=busybox',
  'FROM $base As build',
  'ARG V',
  'RUN --mount=type=secret,id=s,required=true --mount=type=ssh true',
  '# out my output',
  'FROM busybox AS out',
  'COPY --from=build /etc/passwd /x',
  'CMD echo hi',
].join('\n');

suite('checks of Buildfiles', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    await project.write({ 'p/Dockerfile': FILE });
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });
  /** Older clients have `--print` in place of `--call`, and print the text of an answer that they do not know. */
  const call = async (name: string, ...words: readonly string[]): Promise<Said> =>
    await project.docker(['buildx', 'build', `--print=${name}`, ...words], '', { BUILDX_EXPERIMENTAL: '1' });

  test('a check shows the warnings with their lines', async () => {
    const { code, text } = await call('lint', 'p');

    assert.equal(code, 0, text);
    assert.match(text, /WARNING: FromAsCasing - https:\/\/docs\.docker\.com\/go\/dockerfile\/rule\/from-as-casing\/\n/);
    assert.match(
      text,
      /'As' and 'FROM' keywords' casing do not match\n\S*Dockerfile:4\n-+\n[^]*4 \| >>> FROM \$base As build/,
    );
    assert.match(text, /WARNING: JSONArgsRecommended/);
    assert.deepEqual((await engine.get<unknown[]>('/containers/json?all=1')).body, []);
  });

  test('a check of a file without warnings is empty', async () => {
    await project.write({ 'r/Dockerfile': 'FROM busybox\nCMD ["x"]\n' });
    const clean = await call('lint', 'r');
    assert.equal(clean.code, 0);
    assert.doesNotMatch(clean.text, /WARNING/);
  });

  test('an outline lists the parameters of the target, with those of the stages that it needs', async () => {
    const { code, text } = await call('outline', '--build-arg', 'V=2', 'p');

    assert.equal(code, 0, text);
    assert.match(text, /TARGET: +out\nDESCRIPTION: my output\n/);
    assert.match(text, /BUILD ARG +VALUE +DESCRIPTION\nbase +busybox *\nV +2 *\n/);
    assert.match(text, /SECRET +REQUIRED\ns +true\n\nSSH +REQUIRED\ndefault *\n/);
  });

  test('a list of targets names the stages', async () => {
    const { text } = await call('targets', 'p');

    assert.match(text, /TARGET +DESCRIPTION\nbuild *\nout \(default\) my output\n/);
  });

  test('an unknown call is refused', async () => {
    const { code, text } = await call('nonsense', 'p');

    assert.equal(code, 1);
    assert.match(text, /nonsense/);
  });

  test('an ordinary build tells the warnings, and fails by them where the file asks for it', async () => {
    const warned = await project.build('warned', { Dockerfile: 'FROM busybox\nMAINTAINER x\nCMD x\n' });
    assert.equal(warned.code, 0, warned.text);
    assert.match(warned.text, /2 warnings found/);
    assert.match(
      warned.text,
      /MaintainerDeprecated: Maintainer instruction is deprecated in favor of using label \(line 2\)/,
    );
    const failed = await project.build('failed', { Dockerfile: '# check=error=true\nFROM busybox\nCMD x\n' });
    assert.equal(failed.code, 1);
    assert.match(failed.text, /lint violation found for rules: JSONArgsRecommended/);
    const skipped = await project.build(
      'skipped',
      { Dockerfile: 'FROM busybox\nCMD x\n' },
      '--build-arg',
      'BUILDKIT_DOCKERFILE_CHECK=skip=all',
    );
    assert.doesNotMatch(skipped.text, /warning/);
  });
});
