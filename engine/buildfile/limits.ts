import { EngineError } from '../lib/errors.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
/** Platforms of one build. */
export const MAX_PLATFORMS = 32;

/** Bytes of a Buildfile. Real ones have a thousandth of each of these limits. */
export const MAX_FILE_BYTES = 4 * MIB;
export const MAX_LINES = 100_000;
export const MAX_INSTRUCTIONS = 10_000;
export const MAX_STAGES = 500;
/** Characters of an instruction with its continuations, but without here-documents. */
export const MAX_INSTRUCTION_LENGTH = 256 * KIB;
/** Characters of all words of one instruction after the expansion of their variables. */
export const MAX_EXPANDED_LENGTH = MIB;
/** Variables and substitutions in one instruction. */
export const MAX_EXPANSIONS = 100_000;
/** Comparisons of patterns, as in `${a%b*}`, with values in one instruction. */
export const MAX_PATTERN_STEPS = 1_000_000;
/** Characters of all build arguments of a client, or of one stage. */
export const MAX_ARGUMENTS_LENGTH = 4 * MIB;
/** Names that a client gives the result of a build. */
export const MAX_NAMES = 1000;
/** Images whose steps a build trusts (`cachefrom`): each stage looks at all of them. */
export const MAX_CACHE_SOURCES = 100;
/** Characters of the settings of an image. */
export const MAX_SETTINGS_LENGTH = 2 * MIB;
/** Ports, variables, labels and volumes of an image. It has them twice, and no image with 100,000 values can be loaded. */
export const MAX_SETTINGS_ENTRIES = 20_000;
/** Characters of the configurations of all images that one build stores; the daemon keeps them in memory. */
export const MAX_STORED_LENGTH = 12 * MIB;

/** Throws `invalid` for a larger size; `subject` begins the message. */
export function refuseAbove(limit: number, size: number, subject: string, unit: string): void {
  if (size > limit) throw new EngineError('invalid', `${subject} has more than ${shown(limit)} ${unit}`);
}

function shown(limit: number): string {
  return limit.toLocaleString('en-US');
}
