import type { Place } from './linter.ts';

type ArgumentInfo = Readonly<{
  name: string;
  value: string;
  description: string;
  place: Place;
  /** Arguments that its default value has. */
  uses: ReadonlySet<string>;
}>;
type SecretInfo = Readonly<{ isRequired: boolean; place: Place }>;

/** The parameters of a stage. */
export type OutlineParts = Readonly<{
  known: Map<string, ArgumentInfo>;
  used: Set<string>;
  secrets: Map<string, SecretInfo>;
  ssh: Map<string, SecretInfo>;
}>;

type OutlineStage = Readonly<{ name: string; description: string; parts: readonly OutlineParts[] }>;

export function noParts(known: ReadonlyMap<string, ArgumentInfo> = new Map()): OutlineParts {
  return { known: new Map(known), used: new Set(), secrets: new Map(), ssh: new Map() };
}

export function copyOfParts({ known, used, secrets, ssh }: OutlineParts): OutlineParts {
  return { known: new Map(known), used: new Set(used), secrets: new Map(secrets), ssh: new Map(ssh) };
}

export function sizeOfParts({ known, used, secrets, ssh }: OutlineParts): number {
  return known.size + used.size + secrets.size + ssh.size;
}

/** The parameters of a target as `result.json` and `result.txt` show them. */
export function outlineResult(stage: OutlineStage, text: string): ReadonlyMap<string, Buffer> {
  const args = sorted(stage.parts.flatMap(usedArguments));
  const secrets = sorted(stage.parts.flatMap(({ secrets: each }) => [...each].map(named)));
  const ssh = sorted(stage.parts.flatMap(({ ssh: each }) => [...each].map(named)));
  const shown = {
    ...(stage.name !== '' && { name: stage.name }),
    ...(stage.description !== '' && { description: stage.description }),
    ...(args.length > 0 && { args: args.map(shownArgument) }),
    ...(secrets.length > 0 && { secrets: secrets.map(shownSecret) }),
    ...(ssh.length > 0 && { ssh: ssh.map(shownSecret) }),
    sources: [Buffer.from(text).toString('base64')],
  };
  return resultOf(shown, printedOutline(stage, args, secrets, ssh));
}

/** The answer to a request: JSON, a text, and the version of both. */
export function resultOf(json: unknown, text: string): Map<string, Buffer> {
  return new Map([
    ['result.json', Buffer.from(JSON.stringify(json, undefined, 2))],
    ['result.txt', Buffer.from(text)],
    ['version', Buffer.from('1.0.0')],
  ]);
}

/** A place as lists of lines. */
export function rangesOf({ number, end }: Place): object[] {
  return Array.from({ length: end - number + 1 }, (_, index) => ({
    start: { line: number + index },
    end: { line: number + index },
  }));
}

/** A longer cell does not widen its column: each row would take as much. */
const MAX_COLUMN_WIDTH = 256;

/** Rows of cells in columns, as wide as their longest cell and a gap; the last one is as it is. */
export function columns(rows: readonly (readonly string[])[], gap: number): string {
  const widths = rows[0]!.map(
    (_, at) =>
      gap +
      Math.min(
        MAX_COLUMN_WIDTH,
        rows.reduce((most, row) => Math.max(most, row[at]!.length), 0),
      ),
  );
  return rows
    .map((row) => row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!))).join(''))
    .map((line) => `${line}\n`)
    .join('');
}

type Named = Readonly<{ name: string; isRequired: boolean; place: Place }>;

function named([name, info]: [string, SecretInfo]): Named {
  return { name, ...info };
}

/** Those that the stage names, and those in their default values. */
function usedArguments({ known, used }: OutlineParts): ArgumentInfo[] {
  const all = new Set(used);
  for (const name of all) for (const other of known.get(name)?.uses ?? []) all.add(other);
  return [...all].flatMap((name) => known.get(name) ?? []);
}

/** By lines, each name once. */
function sorted<T extends { name: string; place: Place }>(infos: readonly T[]): T[] {
  const byName = new Map<string, T>();
  for (const info of infos) if (!byName.has(info.name)) byName.set(info.name, info);
  return [...byName.values()].toSorted((a, b) => a.place.number - b.place.number);
}

function shownArgument({ name, description, value, place }: ArgumentInfo): object {
  return {
    name,
    ...(description !== '' && { description }),
    ...(value !== '' && { value }),
    location: { ranges: rangesOf(place) },
  };
}

function shownSecret({ name, isRequired, place }: Named): object {
  return { name, ...(isRequired && { required: true }), location: { ranges: rangesOf(place) } };
}

function printedOutline(
  { name, description }: OutlineStage,
  args: readonly ArgumentInfo[],
  secrets: readonly Named[],
  ssh: readonly Named[],
): string {
  let text = '';
  if (name !== '' || description !== '') {
    const rows = [['TARGET:', name || '(default)'], ...(description === '' ? [] : [['DESCRIPTION:', description]])];
    text += `${columns(rows, 1)}\n`;
  }
  if (args.length > 0) {
    const rows = args.map((arg) => [arg.name, arg.value, arg.description]);
    text += `${columns([['BUILD ARG', 'VALUE', 'DESCRIPTION'], ...rows], 3)}\n`;
  }
  for (const [title, list] of [
    ['SECRET', secrets],
    ['SSH', ssh],
  ] as const) {
    if (list.length === 0) continue;
    const rows = list.map((each) => [each.name, each.isRequired ? 'true' : '']);
    text += `${columns([[title, 'REQUIRED'], ...rows], 3)}\n`;
  }
  return text;
}
