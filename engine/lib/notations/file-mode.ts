/** Permissions to set, or changes of those that a file has: `u=rwX,go-w`. */
export type ModeChange = number | readonly ModeStep[];

type Operator = '+' | '-' | '=';
type ModeStep = Readonly<{
  /** Letters of the classes, of `ugo`. */
  who: string;
  operator: Operator;
  /** Letters of `rwxXst`, or of one class whose permissions are copied. */
  permissions: string;
}>;

const MAX_MODE = 0o7777;
const CLAUSE = /^([ugoa]*)((?:[-+=](?:[ugo]|[rwxXst]*))+)$/;
const SHIFTS = new Map(Object.entries({ u: 6, g: 3, o: 0 }));
const BITS = new Map(Object.entries({ r: 4, w: 2, x: 1 }));
const SPECIAL = new Map(Object.entries({ u: 0o4000, g: 0o2000, o: 0 }));
const STICKY = 0o1000;
const ANY_EXECUTE = 0o111;

/** Reads octal digits, or changes in letters. Undefined for anything else. */
export function parseModeChange(text: string): ModeChange | undefined {
  if (/^[0-7]+$/.test(text)) {
    const mode = Number.parseInt(text, 8);
    return mode <= MAX_MODE ? mode : undefined;
  }
  const steps: ModeStep[] = [];
  for (const clause of text.split(',')) {
    const [, who = '', actions] = CLAUSE.exec(clause) ?? [];
    if (actions === undefined) return undefined;
    for (const [, operator, permissions = ''] of actions.matchAll(/([-+=])([^-+=]*)/g)) {
      const classes = who === '' || who.includes('a') ? 'ugo' : who;
      steps.push({ who: classes, operator: operator as Operator, permissions });
    }
  }
  return steps;
}

/** The permissions of a file after the change. */
export function changedMode(change: ModeChange, mode: number, isFolder: boolean): number {
  if (typeof change === 'number') return change;
  return change.reduce((current, step) => withStep(step, current, { isFolder, before: mode }), mode & MAX_MODE);
}

type File = Readonly<{ isFolder: boolean; before: number }>;

function withStep({ who, operator, permissions }: ModeStep, mode: number, file: File): number {
  let set = 0;
  let cleared = 0;
  for (const each of who) {
    const shift = SHIFTS.get(each)!;
    set |= bitsOf(permissions, mode, file) << shift;
    if (permissions.includes('s')) set |= SPECIAL.get(each)!;
    cleared |= (7 << shift) | SPECIAL.get(each)!;
  }
  if (permissions.includes('t')) set |= STICKY;
  if (operator === '+') return mode | set;
  return operator === '-' ? mode & ~set : (mode & ~cleared) | set;
}

/** Three bits for one class. */
function bitsOf(permissions: string, mode: number, { isFolder, before }: File): number {
  const copied = SHIFTS.get(permissions);
  if (copied !== undefined) return (mode >> copied) & 7;
  let bits = 0;
  for (const letter of permissions) {
    if (letter === 'X') bits |= isFolder || (before & ANY_EXECUTE) !== 0 ? 1 : 0;
    else bits |= BITS.get(letter) ?? 0;
  }
  return bits;
}
