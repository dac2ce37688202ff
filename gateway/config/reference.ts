import { isDeepStrictEqual } from 'node:util';

import { REMOVED } from './removed.ts';
import { Config } from './schema.ts';

/** The parts of a schema that are read; TypeBox's own types know more kinds than the settings have. */
type Node = Readonly<{
  type?: string;
  description?: string;
  default?: unknown;
  enum?: readonly (string | number)[];
  const?: string | number;
  anyOf?: readonly Node[];
  items?: Node;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  properties?: Readonly<Record<string, Node>>;
  patternProperties?: Readonly<Record<string, Node>>;
  required?: readonly string[];
}>;

type Row = Readonly<{ key: string; node: Node; required: boolean; meaning: string }>;

const UNITS: readonly (readonly [ending: RegExp, unit: string])[] = [
  [/Ms$/, 'milliseconds'],
  [/Seconds$/, 'seconds'],
  [/Bytes$/, 'bytes'],
  [/Bits$/, 'bits'],
];

const INTRODUCTION = `# Settings of the gateway

Every key of the file that \`./gantry gateway --config FILE\` reads, YAML or JSON; unknown keys are refused. The tasks that need them are in
[gateway.md](gateway.md). This list is made from the schema that checks the file (\`node tools/gateway-reference.ts\`).`;

/** Every key of the configuration file in Markdown, made from the schema that checks it. */
export function settingsReference(): string {
  const top = rowsOf(Config);
  const single = top.filter(({ node }) => !isGroup(node));
  const sections = top.filter(({ node }) => isGroup(node)).map(({ key, node }) => section(key, node));
  return `${[INTRODUCTION, table(single), ...sections, removedSettings()].join('\n\n')}\n`;
}

function removedSettings(): string {
  const rows = [...REMOVED].map(([key, value]) => `| ${code(key)} | ${value} |`);
  return ['## Settings that are gone', '', '| key | its value now |', '|---|---|', ...rows].join('\n');
}

function section(key: string, node: Node): string {
  const alike = grouped(rowsOf(node)).find(({ keys }) => keys.length > 1);
  const paragraphs = [
    `## ${key}`,
    ...(node.description === undefined ? [] : [sentence(node.description)]),
    ...(alike === undefined ? [] : [`\`*\` stands for each of ${alike.keys.map(code).join(', ')}.`]),
    table(rowsUnder(key, node, '')),
  ];
  return paragraphs.join('\n\n');
}

/** A group becomes a table of its own; a list of texts or a map of numbers is one value. */
function isGroup(node: Node): boolean {
  return node.properties !== undefined;
}

/** All keys below, each with its whole path; `context` is what the group that they are in means. */
function rowsUnder(path: string, node: Node, context: string): Row[] {
  return grouped(rowsOf(node)).flatMap(({ keys, ...row }): Row[] => {
    const full = `${path}.${keys.length === 1 ? row.key : '*'}`;
    const { description = '' } = row.node;
    if (isGroup(row.node)) return rowsUnder(full, row.node, description);
    const own = { ...row, key: full, meaning: context === '' ? description : `${context}: ${description}` };
    const entry = entryOf(row.node);
    if (entry === undefined) return [own];
    return [own, ...rowsUnder(`${full}${row.node.items === undefined ? '.ID' : '[]'}`, entry, '')];
  });
}

/** The schema of what a list or a map holds, when that has keys of its own. */
function entryOf({ items, patternProperties = {} }: Node): Node | undefined {
  const value = items ?? Object.values(patternProperties)[0];
  return value?.properties === undefined ? undefined : value;
}

function rowsOf({ properties = {}, required = [] }: Node): Row[] {
  return Object.entries(properties).map(([key, node]) => {
    return { key, node, required: required.includes(key), meaning: node.description ?? '' };
  });
}

/** Groups with the same keys and defaults share one table. */
function grouped(rows: readonly Row[]): (Row & { keys: string[] })[] {
  const groups: (Row & { keys: string[] })[] = [];
  for (const row of rows) {
    const same = isGroup(row.node) ? groups.find(({ node }) => isDeepStrictEqual(node, row.node)) : undefined;
    if (same === undefined) groups.push({ ...row, keys: [row.key] });
    else same.keys.push(row.key);
  }
  return groups;
}

function table(rows: readonly Row[]): string {
  const lines = rows.map(({ key, node, required, meaning }) =>
    [code(key), valueOf(key, node), defaultOf(node, required), meaning].map(cell).join(' | '),
  );
  return ['| key | value | default | meaning |', '|---|---|---|---|', ...lines.map((line) => `| ${line} |`)].join('\n');
}

function valueOf(key: string, node: Node): string {
  const { type, anyOf, items, patternProperties, minimum, maximum } = node;
  if (node.enum !== undefined) return node.enum.map((one) => code(String(one))).join(', ');
  if (node.const !== undefined) return code(String(node.const));
  if (anyOf !== undefined) return anyOf.map((one) => valueOf(key, one)).join('; ');
  if (items !== undefined) {
    if (items.properties !== undefined) return 'list';
    return items.enum === undefined ? 'list of texts' : 'list of names';
  }
  if (patternProperties !== undefined) return entryOf(node) === undefined ? 'map to numbers' : 'map';
  if (type === 'boolean') return '`true`, `false`';
  if (type !== 'integer') return 'text';
  const unit = UNITS.find(([ending]) => ending.test(key))?.[1] ?? 'number';
  return maximum === undefined ? `${unit}, ${minimum ?? 0} or more` : `${unit}, ${minimum ?? 0} to ${maximum}`;
}

function defaultOf({ default: value }: Node, required: boolean): string {
  if (value === undefined) return required ? 'must be given' : 'none';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map((one) => code(String(one))).join(', ');
  if (typeof value === 'object' || value === '') return 'none';
  return code(JSON.stringify(value).replaceAll('"', ''));
}

function code(text: string): string {
  return `\`${text}\``;
}

/** A bar would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`);
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
