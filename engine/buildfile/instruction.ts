import type { Healthcheck } from '../records/healthcheck.ts';
import type { Heredoc } from './lines/heredocs.ts';
import type { MountOption } from './mount-option.ts';

/** A command that is a list of words, or a text for the shell. */
export type CommandWords = Readonly<{ words: readonly string[]; isForShell: boolean }>;
export type Pair = Readonly<{ name: string; value: string }>;

/** Text of an instruction, and its first and last line. */
type Written = Readonly<{ code: string; number: number; end: number }>;

export type From = Written & Readonly<{ kind: 'from'; base: string; name: string; platform: string }>;

export type Copy = Written &
  Readonly<{
    kind: 'copy' | 'add';
    sources: readonly string[];
    destination: string;
    /** A stage or an image; empty for the context. */
    from: string;
    chown: string;
    chmod: string;
    heredocs: readonly Heredoc[];
    /** `--parents`: the files keep their folders. */
    keepsParents: boolean;
    /** Patterns of files that are left out. */
    excluded: readonly string[];
    /** Checksum of a file, or id of a commit, of ADD. */
    checksum: string;
    /** Undefined: the address of a repository may say it. */
    keepsGitFolder: boolean | undefined;
    /** Undefined: archives of the context are extracted by ADD, others are not. */
    unpacks: boolean | undefined;
  }>;

export type Run = Written &
  Readonly<{
    kind: 'run';
    command: CommandWords;
    mounts: readonly MountOption[];
    /** The mounts in BuildKit's dialect, whose variables are expanded before they are read. */
    mountTexts: readonly string[];
    network: 'default' | 'none' | 'host';
    heredocs: readonly Heredoc[];
  }>;

/** The instructions that change only the settings of an image. */
export type Setting = Written &
  (
    | Readonly<{ kind: 'env'; pairs: readonly Pair[] }>
    /** `isLiteral`: from the client, not from the file. */
    | Readonly<{ kind: 'label'; pairs: readonly Pair[]; isLiteral: boolean }>
    | Readonly<{ kind: 'maintainer'; maintainer: string }>
    | Readonly<{ kind: 'onbuild'; trigger: string }>
    | Readonly<{ kind: 'workdir'; path: string }>
    | Readonly<{ kind: 'cmd' | 'entrypoint'; command: CommandWords }>
    | Readonly<{ kind: 'healthcheck'; healthcheck: Healthcheck }>
    | Readonly<{ kind: 'expose'; ports: readonly string[] }>
    | Readonly<{ kind: 'user'; user: string }>
    | Readonly<{ kind: 'volume'; paths: readonly string[] }>
    | Readonly<{ kind: 'stopsignal'; signal: string }>
    | Readonly<{ kind: 'shell'; words: readonly string[] }>
  );

/** A variable that a client may set. */
export type Arg = Written &
  Readonly<{ kind: 'arg'; args: readonly Readonly<{ name: string; value: string | undefined }>[] }>;

/** A step of a stage. */
export type Step = Copy | Run | Setting | Arg;
export type Instruction = From | Step;

/** Whether an instruction only changes the settings of the image. */
export function isSetting(instruction: Instruction): instruction is Setting {
  return !['from', 'run', 'copy', 'add', 'arg'].includes(instruction.kind);
}
