import { readFileSync } from 'node:fs';

import { EXIT, Exit, UsageError } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';

/** A variable without a value takes the caller's; without one there either, it removes the image's. */
export function variables(variable: string): string {
  if (variable.startsWith('=') || variable === '') throw new UsageError(`invalid environment variable: ${variable}`);
  if (variable.includes('=')) return variable;
  const value = process.env[variable];
  return value === undefined ? variable : `${variable}=${value}`;
}

/** The lines of files in docker's format: comments and empty lines are skipped, values are taken unchanged. */
export function linesOfFiles(files: readonly string[]): string[] {
  return files.flatMap((file) =>
    textOf(file)
      .split('\n')
      .flatMap((line) => lineOf(file, line)),
  );
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    if (error instanceof Error && 'code' in error)
      throw new Exit(EXIT.usage, `cannot read ${file}: ${reasonOf(error)}`);
    throw error;
  }
}

function lineOf(file: string, text: string): string[] {
  const line = text.replace(/\r$/, '').trimStart();
  if (line === '' || line.startsWith('#')) return [];
  const [name = ''] = line.split('=', 1);
  if (name === '') throw new UsageError(`${file}: no name in '${line}'`);
  if (/\s/.test(name.trimEnd()) || (line.includes('=') && name !== name.trimEnd())) {
    throw new UsageError(`${file}: the name '${name}' contains blanks`);
  }
  // As in docker, a bare name takes the caller's value, and is skipped without one.
  if (line.includes('=')) return [line];
  return process.env[name.trim()] === undefined ? [] : [name.trim()];
}
