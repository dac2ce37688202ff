import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFile } from '@gantry/engine/buildfile/parse.ts';
import { planOf } from '@gantry/engine/buildfile/stages.ts';

/** An instruction of newer builders, or of none, and the refusal, which names it. */
const refusals: readonly [string, string][] = [
  ['FOO bar', 'unknown instruction: FOO'],
  ['RUN --mount=type=ssh true', 'unsupported mount type "ssh"'],
  ['RUN --mount=type=bind,target=/x,nonsense=1 true', "unexpected key 'nonsense' in 'nonsense=1'"],
  ['RUN --mount=type=tmpfs,target=/x,sharing=locked true', "unexpected key 'sharing' for mount type 'tmpfs'"],
  ['RUN --mount=type=cache,target=/x,sharing=maybe true', 'unsupported sharing value "maybe"'],
  ['RUN --mount=type=cache true', 'invalid mount: cache needs a target'],
  ['RUN --mount=type=cache,target=/x,from=y true', "unexpected key 'from' for mount type 'cache'"],
  ['RUN --mount=type=secret true', 'invalid mount: secret needs an id or a target'],
  ['RUN --network=mine true', 'invalid network mode: mine'],
  ['RUN --security=insecure true', 'security insecure is not valid'],
  ['RUN --device=nvidia.com/gpu true', 'Unknown flag: device'],
  ['COPY --link a b', 'Unknown flag: link'],
  ['COPY --parents a b', 'Unknown flag: parents'],
  ['COPY --exclude=*.md a b', 'Unknown flag: exclude'],
  ['ADD --checksum=sha256:0 http://x/y /', 'Unknown flag: checksum'],
  ['ADD --keep-git-dir=true http://x/y.git /', 'Unknown flag: keep-git-dir'],
  ['ADD --from=x a b', 'Unknown flag: from'],
  ['HEALTHCHECK --start-interval=1s CMD true', 'Unknown flag: start-interval'],
  ['FROM --what=1 busybox', 'Unknown flag: what'],
];

for (const keyword of ['COPY', 'ADD']) {
  test(`${keyword}: a here-document without an end is refused`, () => {
    assert.throws(() => planOf(parseFile(`FROM busybox\n${keyword} <<EOF /f\ntext\n`)), {
      kind: 'invalid',
      message: /unterminated heredoc EOF of line 2/,
    });
  });
}

for (const [instruction, why] of refusals) {
  test(`${instruction}: ${why}`, () => {
    const text = `# a comment\nFROM busybox\nRUN true \\\n  && true\n${instruction}\nRUN true\n`;

    assert.throws(() => planOf(parseFile(text)), {
      kind: 'invalid',
      message: `dockerfile parse error line 5: ${why}`,
    });
  });
}
