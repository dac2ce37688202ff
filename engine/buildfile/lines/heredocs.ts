import { EngineError } from '../../lib/errors.ts';
import type { Dialect } from '../dialect.ts';
import { expandWord } from '../expansion/expand.ts';
import type { Line } from '../parse.ts';
import { splitWords } from './words.ts';

/** Lines of the file that are content: `<<EOF` up to `EOF`. */
export type Heredoc = Readonly<{
  name: string;
  content: string;
  /** The content with its tabs. */
  written: string;
  /** Variables in it are expanded: its name has no quotes. */
  isExpanded: boolean;
  /** `<<-`: tabs in front of its lines do not count. */
  cutsTabs: boolean;
  /** As the word is written in the instruction. */
  word: string;
}>;

type Asked = Omit<Heredoc, 'content' | 'written'>;

/** The lines behind an instruction. */
export type FollowingLines = Readonly<{
  next: () => string | undefined;
  /** Whether a line with this text is among them. */
  has: (text: string, cutsTabs: boolean) => boolean;
}>;

const KEYWORDS: ReadonlySet<string> = new Set(['add', 'copy', 'run']);
const WORD = /^\d*<<(-?)([^<\s]+)$/u;

/** The here-documents that an instruction reads from the lines behind it. */
export function heredocsIn(
  { keyword, original, args }: Pick<Line, 'keyword' | 'original' | 'args'>,
  escape: string,
  dialect: Dialect,
): Asked[] {
  const isTrigger = dialect === 'buildkit' && keyword === 'onbuild';
  if (!KEYWORDS.has(isTrigger ? (args[0] ?? '') : keyword) || !original.includes('<<')) return [];
  return splitWords(original, escape).flatMap((word) => heredocOf(word, escape) ?? []);
}

/** The here-document that a single word begins. */
export function heredocOf(word: string, escape: string): Asked | undefined {
  const [, dash = '', written = ''] = WORD.exec(word) ?? [];
  if (written === '') return undefined;
  const name = expandWord(written.replaceAll('$', `${escape}$`), new Map(), escape);
  return name === '' ? undefined : { name, isExpanded: name === written, cutsTabs: dash !== '', word };
}

/** Reads their contents in turn. Throws `invalid` for one without an end. */
export function readHeredocs(asked: readonly Asked[], source: FollowingLines, line: Line, dialect: Dialect): Heredoc[] {
  return asked.map((heredoc) => {
    const lines: string[] = [];
    for (;;) {
      const read = source.next();
      if (read === undefined) {
        const which = dialect === 'classic' ? ` ${heredoc.name} of line ${line.number}` : '';
        throw new EngineError('invalid', `unterminated heredoc${which}`);
      }
      if ((heredoc.cutsTabs ? withoutTabs(read) : read) === heredoc.name) break;
      lines.push(read);
    }
    const written = textOf(lines);
    return { ...heredoc, written, content: heredoc.cutsTabs ? textOf(lines.map(withoutTabs)) : written };
  });
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** For `<<-`. */
export function withoutTabs(line: string): string {
  return line.replace(/^\t+/, '');
}
