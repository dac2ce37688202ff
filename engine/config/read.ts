import Schema from 'typebox/schema';

import { keeperFolder, rootlessDefaults } from '../host/rootless.ts';
import { messageOf } from '../lib/failure-message.ts';
import { checkSettings, type Problem, type SettingsChecks } from './check.ts';
import { toConfig, type Config } from './daemon-config.ts';
import { flagsOf, parseFlags, type Given } from './flags.ts';
import { ConfigFile, type ConfigKey } from './schema.ts';
import { readJsonFile } from './settings-files.ts';

/** All problems of the settings, each with its source and key. */
export class ConfigError extends Error {
  readonly problems: readonly string[];
  /** Words of the command line that are no flags, or flags without a value. */
  readonly isUsage: boolean;

  constructor(problems: readonly string[], isUsage = false) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
    this.isUsage = isUsage;
  }
}

type KeySchema = { default?: unknown; anyOf?: { const?: unknown }[] };
const KEYS = ConfigFile.properties as Record<string, KeySchema>;

/**
 * Merges flags and file once and checks all of it. Throws `ConfigError` with every problem, each under the flag, or the
 * file and key, as the user wrote it. `ofDomains` are checks that a domain makes of its own settings.
 */
export function readConfig(argv: readonly string[], ofDomains: readonly SettingsChecks[]): Config {
  const flags = parseFlags(argv);
  const problems = [...flags.problems];
  const file = flags.configFile === undefined ? {} : readFile(flags.configFile, problems);
  for (const key of Object.keys(flags.given)) {
    if (!Object.hasOwn(file, key)) continue;
    problems.push(`${flagsOf(key as ConfigKey)}: also set in the configuration file ${flags.configFile}, as "${key}"`);
  }
  const given = { ...file, ...flags.given };
  const report = ({ key, message }: Problem): void => {
    const source = Object.hasOwn(file, key) ? `${flags.configFile}: ${key}` : flagsOf(key);
    problems.push(`${source}: ${message}`);
  };
  const mistyped = checkTypes(given);
  mistyped.forEach(report);
  const complete = { ...defaults(), ...given } as ConfigFile;
  if (mistyped.length === 0) checkSettings(complete, ofDomains).forEach(report);
  if (problems.length > 0) throw new ConfigError(problems, flags.problems.length > 0);
  return toConfig(complete);
}

function defaults(): Given {
  const usual = Object.entries(KEYS).map(([key, schema]) => [key, structuredClone(schema.default)]);
  return {
    ...Object.fromEntries(usual),
    ...(keeperFolder !== undefined && rootlessDefaults(keeperFolder, process.env)),
  };
}

/** Checks key by key, because the schema library's own list of errors is cut off. */
function checkTypes(given: Given): Problem[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const problem = (message: string): Problem => ({ key: key as ConfigKey, message });
    const schema = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
    if (schema === undefined) return [problem('unknown setting')];
    const [fits, [error]] = Schema.Compile(schema).Errors(value);
    if (fits) return [];
    const words = schema.anyOf?.map((one) => one.const);
    if (words !== undefined) return [problem(`${words.join(', ')} are allowed, not ${JSON.stringify(value)}`)];
    const place = error?.instancePath.slice(1).replaceAll('/', '.') ?? '';
    return [problem(`${place === '' ? '' : `${place}: `}${error?.message ?? 'invalid value'}`)];
  });
}

function readFile(path: string, problems: string[]): Given {
  try {
    const read = readJsonFile(path);
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return { ...read };
    problems.push(`${path}: not a JSON object`);
  } catch (error) {
    problems.push(messageOf(error));
  }
  return {};
}
