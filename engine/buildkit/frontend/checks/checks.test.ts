import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LocatedError } from '../../../buildfile/located-error.ts';
import { parseFile } from '../../../buildfile/parse.ts';
import { planOf } from '../../../buildfile/stages.ts';
import { runAtOnce } from '../../../lib/concurrency/slices.ts';
import { EngineError } from '../../../lib/errors.ts';
import { EMPTY_CONFIG } from '../../../records/run-config.ts';
import { evaluateInSteps, type Evaluated } from './evaluate.ts';
import { checkOptions, Linter } from './linter.ts';

const AUTOMATIC = { BUILDPLATFORM: 'linux/amd64', TARGETPLATFORM: 'linux/amd64', TARGETARCH: 'amd64' };

type Given = Partial<Pick<Evaluated, 'given' | 'target' | 'allStages' | 'isIgnored'>>;

/** The warnings as `Rule line: detail`, and the refusal that ended the checks as `line: message`. */
function warningsOf(text: string, given: Given = {}): string[] {
  const plan = planOf(parseFile(text, 'buildkit'));
  const linter = new Linter(checkOptions(plan.file.directives.get('check')?.value ?? ''));
  const said: string[] = [];
  try {
    const work = evaluateInSteps({
      ...{ given: {}, target: '', allStages: true, isIgnored: undefined, ...given },
      ...{ file: plan.file, plan, linter, automatic: AUTOMATIC },
      configOf: (name) => (name.startsWith('busybox') ? EMPTY_CONFIG : undefined),
    });
    runAtOnce(work);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    said.push(`${error instanceof LocatedError ? error.number : 0}: ${error.message}`);
  }
  return [...linter.warnings.map(({ rule, place, detail }) => `${rule.name} ${place.number}: ${detail}`), ...said];
}

/** Files and what dockerd 28.5 says about them. */
const rows: readonly (readonly [string, readonly string[]])[] = [
  ['FROM busybox\nCMD ["x"]', []],
  [
    'from busybox as a\nRUN true\nrun true\nRun true\nFROM a as B',
    [
      `StageNameCasing 5: Stage name 'B' should be lowercase`,
      `FromAsCasing 5: 'as' and 'FROM' keywords' casing do not match`,
      `ConsistentInstructionCasing 1: Command 'from' should match the case of the command majority (uppercase)`,
      `ConsistentInstructionCasing 3: Command 'run' should match the case of the command majority (uppercase)`,
      `ConsistentInstructionCasing 4: Command 'Run' should match the case of the command majority (uppercase)`,
    ],
  ],
  [
    'FROM busybox AS a\nFROM busybox AS a\nFROM busybox AS scratch',
    [
      'DuplicateStageName 2: Duplicate stage name "a", stage names should be unique',
      'ReservedStageName 3: Stage name should not use the same name as reserved stage "scratch"',
    ],
  ],
  [
    'FROM busybox\nCMD echo\nENTRYPOINT ["a"]\nSHELL ["/bin/sh", "-c"]\nCMD echo',
    [
      'JSONArgsRecommended 2: JSON arguments recommended for CMD to prevent unintended behavior related to OS signals',
      'MultipleInstructionsDisallowed 2: Multiple CMD instructions should not be used in the same stage because only the last one will be used',
    ],
  ],
  [
    'ARG VERSION=1\nFROM busybox${VERSIN}\nFROM ${NO}busybox',
    [
      `UndefinedArgInFrom 2: FROM argument 'VERSIN' is not declared (did you mean VERSION?)`,
      `UndefinedArgInFrom 3: FROM argument 'NO' is not declared`,
    ],
  ],
  [
    'FROM busybox\nARG NAME=x\nCOPY $NAM /a\nENV A=$PAHT B=${C:-d} D=$NAME\nRUN echo $NONE',
    [
      `UndefinedVar 3: Usage of undefined variable '$NAM' (did you mean $NAME?)`,
      `UndefinedVar 4: Usage of undefined variable '$PAHT' (did you mean $PATH?)`,
      `UndefinedVar 4: Usage of undefined variable '$C'`,
    ],
  ],
  ['FROM elsewhere\nENV A=$FROM_THE_BASE', []],
  [
    'FROM busybox\nMAINTAINER me',
    ['MaintainerDeprecated 2: Maintainer instruction is deprecated in favor of using label'],
  ],
  [
    'FROM busybox\nENV a b\nLABEL c d e',
    [
      'LegacyKeyValueFormat 2: "ENV key=value" should be used instead of legacy "ENV key value" format',
      'LegacyKeyValueFormat 3: "LABEL key=value" should be used instead of legacy "LABEL key value" format',
    ],
  ],
  [
    'FROM --platform=$TARGETPLATFORM busybox\nFROM --platform=linux/amd64 busybox\nFROM --platform=linux/amd64 busybox AS amd64\nFROM --platform=$BUILDPLATFORM busybox',
    [
      'RedundantTargetPlatform 1: Setting platform to predefined $TARGETPLATFORM in FROM is redundant as this is the default behavior',
      'FromPlatformFlagConstDisallowed 2: FROM --platform flag should not use constant value "linux/amd64"',
    ],
  ],
  [
    'FROM busybox\nARG PASSWORD=x\nENV public_key=x AWS_SECRET=2 keyboard=1',
    [
      'SecretsUsedInArgOrEnv 2: Do not use ARG or ENV instructions for sensitive data (ARG "PASSWORD")',
      'SecretsUsedInArgOrEnv 3: Do not use ARG or ENV instructions for sensitive data (ENV "AWS_SECRET")',
    ],
  ],
  [
    'ARG TAG\nFROM busybox:$TAG',
    [
      'InvalidDefaultArgInFrom 2: Default value for ARG busybox:$TAG results in empty or invalid base image name',
      '2: failed to parse stage name "busybox:": invalid reference format',
    ],
  ],
  [
    'FROM busybox AS a\nWORKDIR a\nWORKDIR b\nFROM a\nWORKDIR c',
    ['WorkdirRelativePath 2: Relative workdir "a" can have unexpected results if the base image changes'],
  ],
  ['FROM busybox\nRUN true \\\n\n  && true', ['NoEmptyContinuation 4: Empty continuation line']],
  [
    'FROM busybox\nEXPOSE 80/TCP 1.2.3.4:81:81',
    [
      `ExposeInvalidFormat 2: EXPOSE instruction should not define an IP address or host-port mapping, found '1.2.3.4:81:81'`,
      `ExposeProtoCasing 2: Defined protocol '80/TCP' in EXPOSE instruction should be lowercase`,
    ],
  ],
  [
    '# check=experimental=InvalidDefinitionDescription\n# about\nARG A\n# B is b\nARG B\n# x\n#\nARG C\nFROM busybox',
    ['InvalidDefinitionDescription 3: Comment for ARG should follow the format: `# A <description>`'],
  ],
  ['# check=skip=MaintainerDeprecated,JSONArgsRecommended\nFROM busybox\nMAINTAINER x\nCMD a', []],
  ['# check=skip=all\nFROM busybox\nMAINTAINER x', []],
  [
    '# check=error=true\nFROM busybox\nMAINTAINER x',
    [
      'MaintainerDeprecated 3: Maintainer instruction is deprecated in favor of using label',
      '0: lint violation found for rules: MaintainerDeprecated',
    ],
  ],
  [
    'FROM busybox AS b\nONBUILD ENV x $NOPE\nFROM b\nRUN true',
    [
      `UndefinedVar 3: Usage of undefined variable '$NOPE'`,
      'LegacyKeyValueFormat 3: "ENV key=value" should be used instead of legacy "ENV key value" format',
    ],
  ],
  ['FROM busybox\nCOPY --from=7 a b', ['0: invalid stage index 7']],
  ['FROM busybox AS a\nCOPY --from=a x y', ['2: circular dependency detected on stage: a']],
  [
    'FROM busybox\nCOPY --from=z a b\nFROM busybox AS z',
    ['2: cannot copy from stage "z", it needs to be defined before current stage "stage-0"'],
  ],
  [
    'FROM busybox\nCOPY --from=$X a b',
    [
      '0: variable expansion is not supported for --from, define a new stage with FROM using ARG from global scope as a workaround',
    ],
  ],
  ['FROM busybox\nADD --checksum=sha256:aa x /', ['2: checksum requires HTTP(S) or Git sources']],
  ['FROM busybox\nSTOPSIGNAL foo', ['2: invalid signal: foo']],
  ['FROM busybox\nEXPOSE 99999', ['2: invalid containerPort: 99999']],
  ['FROM busybox\nEXPOSE 80/x', ['2: invalid port: "80/x": invalid proto: x']],
  [
    'FROM --platform=$NONE busybox',
    [`UndefinedArgInFrom 1: FROM argument 'NONE' is not declared`, '1: empty platform value from expression $NONE'],
  ],
  [
    'ARG X\nFROM $X',
    [
      'InvalidDefaultArgInFrom 2: Default value for ARG $X results in empty or invalid base image name',
      '2: base name ($X) should not be blank',
    ],
  ],
];

for (const [text, warnings] of rows) {
  test(`${JSON.stringify(text).slice(0, 100)}: ${warnings.length} findings`, () => {
    assert.deepEqual(warningsOf(`${text}\n`).toSorted(), [...warnings].toSorted());
  });
}

test('only the stages that the target needs are checked', () => {
  const text = 'FROM busybox AS u\nWORKDIR r\nFROM busybox AS t\nWORKDIR s\nFROM busybox\nWORKDIR q\n';
  const lines = (given: Given): string[] => warningsOf(text, given).map((each) => each.split(':', 1)[0]!);

  assert.deepEqual(lines({ allStages: false }), ['WorkdirRelativePath 6']);
  assert.deepEqual(lines({ allStages: false, target: 'T' }), ['WorkdirRelativePath 4']);
  assert.equal(lines({}).length, 3);
  assert.deepEqual(warningsOf(text, { target: 'tt' }), ['0: target stage "tt" could not be found (did you mean t?)']);
});

test('files that the ignore file leaves out are told to those that ask', () => {
  const given = { isIgnored: (path: string) => path === 'b' };
  const text = 'FROM busybox\nCOPY a b /x/\nADD b /y\nCOPY --from=busybox b /z\n';

  assert.deepEqual(warningsOf(text, given), []);
  assert.deepEqual(warningsOf(`# check=experimental=all\n${text}`, given), [
    'CopyIgnoredFile 3: Attempting to Copy file "b" that is excluded by .dockerignore',
    'CopyIgnoredFile 4: Attempting to Add file "b" that is excluded by .dockerignore',
  ]);
});

for (const [option, why] of [
  ['foo', /invalid check option "foo"/],
  ['foo=1', /invalid check option "foo"/],
  ['error=maybe', /parsing "maybe": invalid syntax/],
] as const) {
  test(`the option ${option} of the checks is refused`, () => {
    assert.throws(() => checkOptions(option), { kind: 'invalid', message: why });
  });
}
