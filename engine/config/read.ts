import { readFileSync } from 'node:fs';

import Schema from 'typebox/schema';

import { hasCode } from '../lib/errors.ts';
import { toConfig, type Config } from './config.ts';
import { flagsOf, parseFlags, type Given } from './flags.ts';
import { ConfigFile, type ConfigKey } from './schema.ts';

/** Everything that is wrong with the settings, each with its source and key. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

const schema = Schema.Compile(ConfigFile);

/** Merges flags and file once and checks all of it. Throws `ConfigError` with every problem. */
export function readConfig(argv: readonly string[]): Config {
  const flags = parseFlags(argv);
  const problems = [...flags.problems];
  const file = flags.configFile === undefined ? {} : readFile(flags.configFile, problems);
  const given: Given = { ...file };
  for (const [key, value] of Object.entries(flags.given)) {
    if (Object.hasOwn(file, key))
      problems.push(`${flagsOf(key as ConfigKey)}: the configuration file sets "${key}" too`);
    given[key] = value;
  }
  const complete = withDefaults(given);
  for (const error of schema.Errors(complete)[1]) {
    const path = error.instancePath.slice(1).replaceAll('/', '.');
    const key = path.split('.')[0] as ConfigKey;
    const unknown = 'additionalProperties' in error.params ? ` (${String(error.params.additionalProperties)})` : '';
    const source = Object.hasOwn(flags.given, key)
      ? flagsOf(key)
      : `configuration file, ${path === '' ? 'keys' : path}`;
    problems.push(`${source}: ${error.message}${unknown}`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return toConfig(complete as ConfigFile);
}

function withDefaults(given: Given): Given {
  const complete: Given = { ...given };
  for (const [key, { default: initial }] of Object.entries(
    ConfigFile.properties as Record<string, { default?: unknown }>,
  )) {
    if (complete[key] === undefined) complete[key] = structuredClone(initial);
  }
  return complete;
}

function readFile(path: string, problems: string[]): Given {
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return { ...read };
    problems.push(`${path}: a JSON object is expected`);
  } catch (error) {
    if (!(error instanceof SyntaxError) && !hasCode(error, 'ENOENT')) throw error;
    problems.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return {};
}
