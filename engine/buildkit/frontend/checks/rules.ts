/** A rule of the checks of a Buildfile: its name, what it demands, and whether a file has to ask for it. */
export type Rule = Readonly<{ name: string; description: string; url: string; isExperimental: boolean }>;

function rule(name: string, page: string, description: string, isExperimental = false): Rule {
  const url = page === '' ? '' : `https://docs.docker.com/go/dockerfile/rule/${page}/`;
  return { name, description, url, isExperimental };
}

/** Names and words are those of BuildKit, because users skip rules by their names. */
export const RULES = {
  stageNameCasing: rule('StageNameCasing', 'stage-name-casing', 'Stage names should be lowercase'),
  fromAsCasing: rule('FromAsCasing', 'from-as-casing', "The 'as' keyword should match the case of the 'from' keyword"),
  noEmptyContinuation: rule(
    'NoEmptyContinuation',
    'no-empty-continuation',
    'Empty continuation lines will become errors in a future release',
  ),
  consistentInstructionCasing: rule(
    'ConsistentInstructionCasing',
    'consistent-instruction-casing',
    'All commands within the Dockerfile should use the same casing (either upper or lower)',
  ),
  duplicateStageName: rule('DuplicateStageName', 'duplicate-stage-name', 'Stage names should be unique'),
  reservedStageName: rule(
    'ReservedStageName',
    'reserved-stage-name',
    'Reserved words should not be used as stage names',
  ),
  jsonArgsRecommended: rule(
    'JSONArgsRecommended',
    'json-args-recommended',
    'JSON arguments recommended for ENTRYPOINT/CMD to prevent unintended behavior related to OS signals',
  ),
  maintainerDeprecated: rule(
    'MaintainerDeprecated',
    'maintainer-deprecated',
    'The MAINTAINER instruction is deprecated, use a label instead to define an image author',
  ),
  undefinedArgInFrom: rule('UndefinedArgInFrom', 'undefined-arg-in-from', 'FROM command must use declared ARGs'),
  workdirRelativePath: rule(
    'WorkdirRelativePath',
    'workdir-relative-path',
    'Relative workdir without an absolute workdir declared within the build can have unexpected results if the base image changes',
  ),
  undefinedVar: rule('UndefinedVar', 'undefined-var', 'Variables should be defined before their use'),
  multipleInstructionsDisallowed: rule(
    'MultipleInstructionsDisallowed',
    'multiple-instructions-disallowed',
    'Multiple instructions of the same type should not be used in the same stage',
  ),
  legacyKeyValueFormat: rule(
    'LegacyKeyValueFormat',
    'legacy-key-value-format',
    'Legacy key/value format with whitespace separator should not be used',
  ),
  invalidBaseImagePlatform: rule(
    'InvalidBaseImagePlatform',
    '',
    'Base image platform does not match expected target platform',
  ),
  redundantTargetPlatform: rule(
    'RedundantTargetPlatform',
    'redundant-target-platform',
    'Setting platform to predefined $TARGETPLATFORM in FROM is redundant as this is the default behavior',
  ),
  secretsUsedInArgOrEnv: rule(
    'SecretsUsedInArgOrEnv',
    'secrets-used-in-arg-or-env',
    'Sensitive data should not be used in the ARG or ENV commands',
  ),
  invalidDefaultArgInFrom: rule(
    'InvalidDefaultArgInFrom',
    'invalid-default-arg-in-from',
    'Default value for global ARG results in an empty or invalid base image name',
  ),
  fromPlatformFlagConstDisallowed: rule(
    'FromPlatformFlagConstDisallowed',
    'from-platform-flag-const-disallowed',
    'FROM --platform flag should not use a constant value',
  ),
  copyIgnoredFile: rule(
    'CopyIgnoredFile',
    'copy-ignored-file',
    'Attempting to Copy file that is excluded by .dockerignore',
    true,
  ),
  invalidDefinitionDescription: rule(
    'InvalidDefinitionDescription',
    'invalid-definition-description',
    'Comment for build stage or argument should follow the format: `# <arg/stage name> <description>`. If this is not intended to be a description comment, add an empty line or comment between the instruction and the comment.',
    true,
  ),
  exposeProtoCasing: rule(
    'ExposeProtoCasing',
    'expose-proto-casing',
    'Protocol in EXPOSE instruction should be lowercase',
  ),
  exposeInvalidFormat: rule(
    'ExposeInvalidFormat',
    'expose-invalid-format',
    'IP address and host-port mapping should not be used in EXPOSE instruction. This will become an error in a future release',
  ),
} as const;
