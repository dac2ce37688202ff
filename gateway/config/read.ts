import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { Value } from 'typebox/value';
import { isMap, isNode, isScalar, LineCounter, type Document, parseDocument, type YAMLError } from 'yaml';

import { readFile, reasonOf } from '../lib/reason.ts';
import { crossCheck } from './check.ts';
import type { Path, Problem } from './problem.ts';
import { removedMessage } from './removed.ts';
import { Config } from './schema.ts';
import { patternMessage } from './settings/values.ts';

/** Everything that is wrong with the settings, each with its place. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Values of flags, under the keys of the file: `store.kind` → value. */
export type FlagValues = ReadonlyMap<string, Readonly<{ flag: string; value: unknown }>>;

type SchemaError = ReturnType<typeof schema.Errors>[number];
type Source = Readonly<{ values: Record<string, unknown>; problems: string[]; place: (problem: Problem) => string }>;

const schema = Compile(Config);

const MAX_PARSER_PROBLEMS = 20;
const TOO_DEEP = 'it is nested too deeply';

/** Reports all problems, not only the first eight. */
Settings.Set({ maxErrors: 1000 });

/** Merges file and flags once and checks all of it. Throws `ConfigError` with every problem. */
export function readConfig(file: string | undefined, flags: FlagValues = new Map()): Config {
  const source = file === undefined ? noFile : readSource(file);
  const problems = [...source.problems];
  const values = structuredClone(source.values);
  for (const [key, { flag, value }] of flags) {
    if (!setOnce(values, key.split('.'), value)) problems.push(`${flag}: ${file} sets ${key} too`);
  }
  const byFlag = ({ path: [head] }: Problem): string | undefined => flags.get(String(head))?.flag;
  const complete: unknown = Value.Default(Config, values);
  const found = schema.Check(complete) ? crossCheck(complete) : [...schemaProblems(complete), ...restProblems(values)];
  // Where the file cannot be read at all, keys that are missing for that reason are not reported.
  if (problems.length === 0 || source.problems.length === 0) {
    for (const problem of found) problems.push(`${byFlag(problem) ?? source.place(problem)}: ${problem.message}`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return deepFreeze(complete as Config);
}

/** Returns the settings with others for one caller; none: as the file has them. Throws `ConfigError`. */
export function withOverrideOf(config: Config, key: string, wanted: unknown): Config {
  const values: unknown = { ...structuredClone(config), overrides: { ...config.overrides, [key]: wanted } };
  if (!schema.Check(values)) {
    throw new ConfigError(schemaProblems(values).map(({ path, message }) => `${path.join('.')}: ${message}`));
  }
  return deepFreeze(values);
}

const noFile: Source = { values: {}, problems: [], place: ({ path }) => path.join('.') || 'settings' };

/** JSON is read as YAML too: that gives it places. */
function readSource(file: string): Source {
  let written: string;
  try {
    written = readFile(file);
  } catch (error) {
    throw new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
  const lines = new LineCounter();
  const document = parseDocument(written, {
    ...{ lineCounter: lines, prettyErrors: false, version: '1.2' },
    resolveKnownTags: false, // values are those of JSON: no binary data, no sets
    logLevel: 'error', // no warnings on standard error
  });
  const at = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const problems = parserProblems(document).map(({ pos, message }) => `${at(pos[0])}: ${message}`);
  let values: unknown = {};
  if (problems.length === 0) {
    try {
      values = document.toJS({ maxAliasCount: 100 }) ?? {};
    } catch (error) {
      problems.push(`${file}: ${error instanceof RangeError ? TOO_DEEP : reasonOf(error)}`);
    }
  }
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    problems.push(`${file}:1:1: settings are expected, key: value`);
    values = {};
  }
  return {
    values: values as Record<string, unknown>,
    problems,
    place: (problem) => `${at(offsetOf(document, problem))}: ${problem.path.join('.') || 'settings'}`,
  };
}

/** One problem of a parser often leads to many more. */
function parserProblems({ errors, warnings }: Document.Parsed): readonly Pick<YAMLError, 'pos' | 'message'>[] {
  const deep = errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION');
  if (deep !== undefined) return [{ pos: deep.pos, message: TOO_DEEP }];
  return [...errors, ...warnings].slice(0, MAX_PARSER_PROBLEMS).map(({ code, pos, message }) => ({
    pos,
    message: code === 'MULTIPLE_DOCS' ? 'a second document begins: one is expected' : message,
  }));
}

/** Where in the text the value stands, or else the nearest value around it that does. */
function offsetOf(document: Document.Parsed, { path, key }: Problem): number {
  for (let depth = path.length; depth >= 0; depth -= 1) {
    const parent: unknown = depth === 0 ? undefined : document.getIn(path.slice(0, depth - 1), true);
    const last = path[depth - 1];
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(last));
      const node = key === true && depth === path.length ? pair?.key : (pair?.value ?? pair?.key);
      if (isNode(node) && node.range) return node.range[0];
    }
    const node: unknown = document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

/** One message of the schema. Of a choice of words each is one `word`; that it has to be a `text` is said beside them. */
type Objection = Problem & Readonly<{ wants?: 'text' | 'word' }>;

function schemaProblems(values: unknown): Problem[] {
  const objections = schema.Errors(values).flatMap(objectionsOf);
  const byPlace = Map.groupBy(objections, ({ path, key }) => JSON.stringify([path, key]));
  return [...byPlace.values()].map((all) => {
    const isChoice = all.some(({ wants }) => wants === 'word');
    const messages = all.filter(({ wants }) => !isChoice || wants !== 'text').map(({ message }) => message);
    const { path, key } = all[0]!;
    const message = [...new Set(messages)].join(' or ');
    return key === undefined ? { path, message: withGiven(path, message, values) } : { path, message, key };
  });
}

function objectionsOf(error: SchemaError): Objection[] {
  const path = pathOf(error.instancePath);
  const { keyword } = error;
  if (keyword === 'boolean' || keyword === 'anyOf') return []; // these only sum up others
  if (keyword === 'required') {
    return error.params.requiredProperties.map((name) => ({
      path: [...path, name],
      message: 'is missing',
      key: false,
    }));
  }
  if (keyword === 'additionalProperties') {
    return error.params.additionalProperties.map((name) => ({
      path: [...path, name],
      message: removedMessage([...path, name]) ?? 'unknown key',
      key: true,
    }));
  }
  if (keyword === 'const')
    return [{ path, message: `must be ${JSON.stringify(error.params.allowedValue)}`, wants: 'word' }];
  if (keyword === 'enum') return [{ path, message: `must be one of ${error.params.allowedValues.join(', ')}` }];
  if (keyword === 'pattern') return [{ path, message: patternMessage(error.params.pattern) }];
  const isText = keyword === 'type' && error.params.type === 'string';
  return [{ path, message: error.message, ...(isText ? { wants: 'text' } : {}) }];
}

/** Further problems in the parts that have the right form. */
function restProblems(values: Record<string, unknown>): Problem[] {
  const rest = structuredClone(values);
  const bad: Path[] = [];
  for (const { path, key } of schemaProblems(Value.Default(Config, structuredClone(values)))) {
    const removed = removeAt(rest, path);
    if (key !== true) bad.push(removed); // nothing depends on an unknown key
  }
  rest['upstream'] ??= 'http://upstream.invalid';
  for (const top of Object.keys(rest)) {
    if (schema.Check(Value.Default(Config, structuredClone(rest)))) break;
    if (bad.some(([head]) => head === top)) delete rest[top]; // it needs what was removed
  }
  const complete: unknown = Value.Default(Config, rest);
  if (!schema.Check(complete)) return [];
  // Next to what was removed nothing is certain.
  return crossCheck(complete).filter(
    ({ path }) =>
      !bad.some((other) => startsWith(other, path) || (other.length > 1 && startsWith(path, other.slice(0, -1)))),
  );
}

/**
 * Removes a value, and returns the path of what was removed: one in a list takes the list along, since the places of the
 * others would change.
 */
function removeAt(values: Record<string, unknown>, path: Path): Path {
  let inner: unknown = values;
  for (const [index, step] of path.entries()) {
    if (typeof inner !== 'object' || inner === null) break;
    const record = inner as Record<string, unknown>;
    if (index === path.length - 1 || Array.isArray(record[step])) {
      delete record[step];
      return path.slice(0, index + 1);
    }
    inner = record[step];
  }
  return path;
}

function startsWith(path: Path, beginning: Path): boolean {
  return beginning.every((step, index) => path[index] === step);
}

function withGiven(path: Path, message: string, values: unknown): string {
  const given = path.reduce<unknown>(
    (value, step) => (value as Record<string | number, unknown> | null)?.[step],
    values,
  );
  return typeof given === 'object' || given === undefined ? message : `${message}, not ${JSON.stringify(given)}`;
}

function pathOf(pointer: string): (string | number)[] {
  const steps = pointer.split('/').slice(1);
  return steps.map((step) => {
    const plain = step.replaceAll('~1', '/').replaceAll('~0', '~');
    return /^\d+$/.test(plain) ? Number(plain) : plain;
  });
}

/** False: it is set already. */
function setOnce(values: Record<string, unknown>, path: readonly string[], value: unknown): boolean {
  const [head = '', ...rest] = path;
  if (rest.length === 0) {
    if (values[head] !== undefined) return false;
    values[head] = value;
    return true;
  }
  const inner = values[head] ?? {};
  if (typeof inner !== 'object' || inner === null) return false;
  values[head] = inner;
  return setOnce(inner as Record<string, unknown>, rest, value);
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
