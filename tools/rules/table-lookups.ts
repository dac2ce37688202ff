import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A constant table with any text as its key, as an object. */
const TABLE = /\bconst (\w+): (?:Readonly<)?Record<string, .*? = /g;

/**
 * Places, as `file:line`, that look up a name in a plain object without `Object.hasOwn`: names such as `constructor`, which
 * every object has, would be found.
 */
export function tableLookups(root: string, files: readonly string[]): string[] {
  return files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return Array.from(text.matchAll(TABLE), ([, name]) => name!)
      .filter((name) => !text.includes(`Object.hasOwn(${name}, `))
      .flatMap((name) => Array.from(text.matchAll(new RegExp(`\\b${name}\\[[^'\\d\\]]`, 'g')), ({ index }) => index))
      .filter((index) => !isWrite(text, index))
      .map((index) => `${file}:${text.slice(0, index).split('\n').length}`);
  });
}

/** Whether a name is set: `table[name] = value`, which is an own name afterwards. */
function isWrite(text: string, index: number): boolean {
  return /^\w+\[[^\]]*\] = /.test(text.slice(index, index + 200));
}
