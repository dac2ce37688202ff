/** A `docker cp`: `HERE` is a folder of the client, `CTR:/w` one of the container, both filled by a shell before. */
export type CopyRow = Readonly<{
  why: string;
  here?: string;
  inside?: string;
  words: readonly string[];
  /** The input of the command. */
  stdin?: string;
  /** It writes an archive. */
  isArchive?: true;
  /** A deliberately different answer of our engine. */
  differs?: object;
}>;

const TREE = 'mkdir -p t/sub; echo one >t/one; echo two >t/sub/two; chmod 750 t/sub; ln -s one t/link';

export const COPIES: readonly CopyRow[] = [
  { why: 'a file to a folder', here: 'echo x >f', words: ['HERE/f', 'CTR:/w'] },
  { why: 'a file to a folder with a slash', here: 'echo x >f', words: ['HERE/f', 'CTR:/w/'] },
  { why: 'a file to another name', here: 'echo x >f; chmod 751 f', words: ['HERE/f', 'CTR:/w/g'] },
  { why: 'a file over a file', here: 'echo x >f', inside: 'echo old >g', words: ['HERE/f', 'CTR:/w/g'] },
  { why: 'a file to a missing folder', here: 'echo x >f', words: ['HERE/f', 'CTR:/w/no/'] },
  { why: 'a file below a missing folder', here: 'echo x >f', words: ['HERE/f', 'CTR:/w/no/f'] },
  {
    why: 'a file through a link to a file',
    here: 'echo x >f',
    inside: 'echo old >g; ln -s g l',
    words: ['HERE/f', 'CTR:/w/l'],
  },
  {
    why: 'a file through a link to a folder',
    here: 'echo x >f',
    inside: 'mkdir d; ln -s d l',
    words: ['HERE/f', 'CTR:/w/l'],
  },
  { why: 'a file through a link to nothing', here: 'echo x >f', inside: 'ln -s g l', words: ['HERE/f', 'CTR:/w/l'] },
  { why: 'a folder to a folder', here: TREE, words: ['HERE/t', 'CTR:/w'] },
  { why: 'a folder to a new name', here: TREE, words: ['HERE/t', 'CTR:/w/new'] },
  { why: 'the content of a folder', here: TREE, words: ['HERE/t/.', 'CTR:/w'] },
  { why: 'the content of a folder to a new name', here: TREE, words: ['HERE/t/.', 'CTR:/w/new'] },
  { why: 'a folder over a file', here: TREE, inside: 'echo x >t', words: ['HERE/t', 'CTR:/w/t'] },
  {
    why: 'a folder into one of the same name',
    here: TREE,
    inside: 'mkdir t; echo x >t/old',
    words: ['HERE/t', 'CTR:/w'],
  },
  { why: 'a link', here: 'echo x >f; ln -s f l', words: ['HERE/l', 'CTR:/w'] },
  { why: 'what a link leads to', here: 'echo x >f; ln -s f l', words: ['-L', 'HERE/l', 'CTR:/w'] },
  { why: 'with its owner', here: 'echo x >f; chown 5:6 f', words: ['-a', 'HERE/f', 'CTR:/w'] },
  { why: 'what is not here', words: ['HERE/no', 'CTR:/w'] },
  { why: 'an archive from the input', here: TREE, stdin: 'tar c t', words: ['-', 'CTR:/w'] },
  {
    why: 'an archive from the input to a file',
    here: TREE,
    inside: 'echo x >f',
    stdin: 'tar c t',
    words: ['-', 'CTR:/w/f'],
  },
  { why: 'an archive from the input to nowhere', here: TREE, stdin: 'tar c t', words: ['-', 'CTR:/w/no'] },
  { why: 'out: a file to a folder', inside: 'echo x >f', words: ['CTR:/w/f', 'HERE'] },
  { why: 'out: a file to another name', inside: 'echo x >f; chmod 751 f', words: ['CTR:/w/f', 'HERE/g'] },
  { why: 'out: a file over a file', here: 'echo old >g', inside: 'echo x >f', words: ['CTR:/w/f', 'HERE/g'] },
  { why: 'out: a file to a missing folder', inside: 'echo x >f', words: ['CTR:/w/f', 'HERE/no/'] },
  { why: 'out: a folder to a folder', inside: TREE, words: ['CTR:/w/t', 'HERE'] },
  { why: 'out: a folder to a new name', inside: TREE, words: ['CTR:/w/t', 'HERE/new'] },
  { why: 'out: the content of a folder', inside: TREE, words: ['CTR:/w/t/.', 'HERE'] },
  { why: 'out: a folder over a file', here: 'echo x >t', inside: TREE, words: ['CTR:/w/t', 'HERE/t'] },
  { why: 'out: a link', inside: 'echo x >f; ln -s f l', words: ['CTR:/w/l', 'HERE'] },
  { why: 'out: what a link leads to', inside: 'echo x >f; ln -s $PWD/f l', words: ['-L', 'CTR:/w/l', 'HERE'] },
  { why: 'out: a folder behind a link', inside: `${TREE}; ln -s t l`, words: ['CTR:/w/l/.', 'HERE'] },
  { why: 'out: a file with a slash', inside: 'echo x >f', words: ['CTR:/w/f/', 'HERE'], differs: NOT_A_FOLDER() },
  { why: 'out: a missing path', words: ['CTR:/w/no', 'HERE'] },
  { why: 'out: an archive to the output', inside: TREE, words: ['CTR:/w/t', '-'], isArchive: true },
  { why: 'out: a file as an archive to the output', inside: 'echo x >f', words: ['CTR:/w/f', '-'], isArchive: true },
  { why: 'an unknown container', here: 'echo x >f', words: ['HERE/f', 'nobody:/w'] },
];

/** Dockerd tells a path of the machine, with the status 500. */
function NOT_A_FOLDER(): object {
  return {
    code: 1,
    stdout: '',
    stderr: 'Error response from daemon: /W/f/ is not a directory\n',
    here: '. directory 755\n',
    inside: ['./ directory 755 0 0  ', './f file 644 0 0  x'],
  };
}
