import type { Files } from './compared.ts';

/** A Buildfile with its context, built by both engines. */
export type BuildRow = Readonly<{
  why: string;
  file: string;
  files?: Files;
  query?: string;
  /** The reason for a deliberate difference, and the beginning of our answer. */
  differs?: Readonly<{ why: string; status: number; says: string }>;
}>;

const encode = (value: unknown): string => encodeURIComponent(JSON.stringify(value));

const FILES: Files = {
  'a.txt': 'a\n',
  'd/': { type: 'directory', mode: 0o750, uid: 3, gid: 4 },
  'd/b.txt': { content: 'b\n', mode: 0o600, uid: 1000, gid: 1000 },
  'd/e/c.txt': 'c\n',
  link: { type: 'symlink', linkName: 'd/b.txt' },
  'd/inner': { type: 'symlink', linkName: '../a.txt' },
  'x y.txt': 'blank\n',
};
const LIST = 'RUN find /dest | sort | while read f; do stat -c "%n %F %a %u %g %s" "$f"; done';

export const rows: readonly BuildRow[] = [
  { why: 'FROM alone', file: 'FROM busybox' },
  {
    why: 'settings',
    file: 'FROM busybox\nENV A=1 B="x y" C=\'$A\'\nENV D the rest $A\nLABEL a=b "c d"="e f" z=1\nLABEL a=c\nEXPOSE 80 443/tcp 53/udp 8000-8002\nUSER 1:2\nSTOPSIGNAL SIGUSR1\nMAINTAINER me <a@b>\nVOLUME /v /w\nVOLUME ["/x y"]\nCMD ["a", "b"]',
  },
  {
    why: 'commands',
    file: 'FROM busybox\nCMD echo "hi" $X\nENTRYPOINT a b\nSHELL ["/bin/sh", "-ec"]\nCMD x\nENTRYPOINT ["/init"]\nCMD\nENTRYPOINT',
  },
  {
    why: 'an entrypoint behind a command',
    file: 'FROM busybox\nCMD ["x"]\nENTRYPOINT ["y"]',
  },
  {
    why: 'health checks',
    file: 'FROM busybox\nHEALTHCHECK --interval=1m30s --timeout=500ms --retries=3 CMD ["/check", "a\\"b"]\nHEALTHCHECK --start-period=2s CMD curl -f x\nHEALTHCHECK NONE\nHEALTHCHECK CMD y',
  },
  {
    why: 'working directories',
    file: 'FROM busybox\nWORKDIR /a/b\nWORKDIR c\nRUN pwd && stat -c "%a %u %g" /a /a/b/c\nWORKDIR /tmp\nWORKDIR ../x/./y/\nRUN pwd\nUSER 1000\nWORKDIR /mine\nRUN stat -c "%a %u %g" /mine',
  },
  {
    why: 'RUN',
    file: 'FROM busybox\nRUN echo out\nRUN echo err >&2\nRUN echo -n "no end"\nRUN ["/bin/sh", "-c", "echo exec $0"]\nRUN echo a \\\n  b \\\n# comment\n  c\nENV A=1\nRUN echo "$A $PATH $HOME $HOSTNAME" | sed s/$HOSTNAME/host/',
  },
  {
    why: 'two signs that are no here-document: shifts, quotes, arithmetic over lines',
    file: 'FROM busybox\nRUN echo $(( 1 <<2 ))\nRUN echo $((1<<3)) "a <<EOF b" \'<<EOF\'\nRUN echo $(( 1 \\\n <<4 ))',
  },
  {
    why: 'a here-document of the shell that its line continues',
    file: 'FROM busybox\nRUN echo <<EOF \\\nfirst \\\nEOF > /f && \\\n    echo done\nRUN exec 2>&1; cat /f; cat <<-END \\\n\ttext \\\n\tEND',
  },
  { why: 'a here-document without an end', file: 'FROM busybox\nRUN true\nRUN cat <<EOF\nRUN <<-"X"' },
  { why: 'an instruction behind a here-document without an end', file: 'FROM busybox\nRUN cat <<EOF\nhello\nRUN x' },
  { why: 'RUN that changes nothing', file: 'FROM busybox\nRUN true\nRUN echo x > /x\nRUN rm /x\nRUN test ! -e /x' },
  { why: 'a failing RUN', file: 'FROM busybox\nRUN echo before\nRUN echo failing; exit 3\nRUN echo never' },
  { why: 'a missing command', file: 'FROM busybox\nRUN ["/nope"]', query: 'forcerm=1' },
  {
    why: 'an image that keeps triggers',
    file: 'FROM busybox\nONBUILD RUN echo triggered\nONBUILD ENV A=b\nonbuild label x=y',
    query: 't=onbuild',
  },
  { why: 'triggers', file: 'FROM onbuild\nRUN echo own $A' },
  {
    why: 'COPY of files',
    file: `FROM busybox\nCOPY a.txt /dest/\nCOPY a.txt /dest/other\nCOPY a.txt d/b.txt /dest/more/\nCOPY ["x y.txt", "/dest/x y"]\nCOPY link /dest/followed\nWORKDIR /dest\nCOPY a.txt relative/\n${LIST}`,
    files: FILES,
  },
  {
    why: 'COPY of folders',
    file: `FROM busybox\nCOPY d /dest/d\nCOPY . /dest/all/\nCOPY d/ /dest/d/\n${LIST}`,
    files: FILES,
  },
  {
    why: 'COPY of files with more behind their names',
    file: `FROM busybox\n${[
      ...['a.txt/ /dest/1', 'a.txt/. /dest/2', './a.txt// /dest/3/', 'd/../a.txt/ /dest/4', 'none/../a.txt /dest/5'],
      ...['/a.txt/ /dest/6', 'link/ /dest/7', 'd/b.txt/ d/e/c.txt/ /dest/8/', 'd//e/ /dest/9', 'a.txt /dest/10/.'],
    ]
      .map((words) => `COPY ${words}`)
      .join('\n')}\nADD a.txt/ /dest/11\nCOPY --from=busybox /bin/sh/ /dest/12\n${LIST}`,
    files: FILES,
  },
  {
    why: 'COPY with patterns',
    file: `FROM busybox\nCOPY *.txt /dest/\nCOPY d/?.txt /dest/one/\nCOPY [a-b].txt /dest/class/\n${LIST}`,
    files: FILES,
  },
  {
    why: 'COPY --chown',
    file: `FROM busybox\nCOPY --chown=daemon d /dest/d\nCOPY --chown=1:wheel a.txt /dest/new/a\nARG O=7\nCOPY --chown=$O:8 a.txt /dest/\n${LIST}`,
    files: FILES,
  },
  { why: 'COPY --chown of nobody', file: 'FROM busybox\nCOPY --chown=whoever a.txt /', files: FILES },
  { why: 'COPY of nothing', file: 'FROM busybox\nCOPY nope /', files: FILES },
  { why: 'COPY from outside', file: 'FROM busybox\nCOPY ../x /', files: FILES },
  { why: 'COPY of several to a file', file: 'FROM busybox\nCOPY a.txt d/b.txt /x', files: FILES },
  { why: 'COPY of a pattern without matches', file: 'FROM busybox\nCOPY nope* /', files: FILES },
  { why: 'COPY of an address', file: 'FROM busybox\nCOPY http://127.0.0.1/x /' },
  {
    why: 'COPY over what is there',
    file: `FROM busybox\nRUN mkdir -p /dest/d/e && echo old > /dest/d/b.txt && echo stays > /dest/d/stays && ln -s /dest/d /dest/link\nCOPY d /dest/d\nCOPY a.txt /dest/link/\n${LIST}`,
    files: FILES,
  },
  {
    why: 'stages',
    file: 'FROM busybox AS one\nRUN echo 1 > /one\nFROM one AS two\nRUN echo 2 > /two\nFROM busybox\nCOPY --from=two /one /two /dest/\nCOPY --from=0 /one /dest/zero\nRUN cat /dest/*',
  },
  {
    why: 'COPY --from of an image',
    file: 'FROM scratch\nCOPY --from=busybox /bin/busybox /bin/sh\nCOPY --from=busybox /etc /etc/\nRUN echo ran',
  },
  { why: 'a wrong --from', file: 'FROM busybox\nCOPY --from=3 /x /' },
  { why: 'a --from of itself', file: 'FROM busybox\nCOPY --from=0 /x /' },
  {
    why: 'a target',
    file: 'FROM busybox AS one\nRUN echo one\nFROM busybox AS two\nRUN echo two',
    query: 'target=ONE',
  },
  { why: 'a missing target', file: 'FROM busybox', query: 'target=nope' },
  {
    why: 'a stage name twice',
    file: 'FROM busybox AS a\nFROM busybox AS A',
    differs: { why: 'before the first step', status: 400, says: 'a stage name already used' },
  },
  {
    why: 'arguments',
    file: 'ARG TAG=latest\nARG REPO\nFROM ${REPO:-busybox}:$TAG\nARG TAG\nARG A=1\nARG B\nRUN echo "$TAG $A $B"\nENV A=env\nRUN echo "$A"\nARG C=$A-c\nLABEL c=$C',
    query: `buildargs=${encode({ A: 'given', B: 'b' })}`,
  },
  {
    why: 'arguments without an ARG',
    file: 'FROM busybox\nRUN echo "$X"',
    query: `buildargs=${encode({ X: 'x' })}`,
  },
  {
    why: 'proxies',
    file: 'FROM busybox\nRUN echo "$HTTP_PROXY"\nARG HTTP_PROXY\nRUN echo "$HTTP_PROXY"',
    query: `buildargs=${encode({ HTTP_PROXY: 'http://p' })}`,
  },
  {
    why: 'labels of the client',
    file: 'FROM busybox AS a\nRUN true\nFROM a\nLABEL x=1',
    query: `labels=${encode({ z: '$HOME', a: 'b c' })}`,
  },
  { why: 'names', file: 'FROM busybox', query: 't=one&t=two:v1&t=one:latest' },
  {
    why: 'a bad name',
    file: 'FROM busybox',
    query: 't=UPPER',
    differs: { why: 'a bad parameter is 400', status: 400, says: 'invalid reference format' },
  },
  { why: 'the id alone', file: 'FROM busybox\nRUN echo x', query: 'q=1' },
  { why: 'the id alone of a failure', file: 'FROM busybox\nRUN exit 1', query: 'q=1' },
  {
    why: 'another file',
    file: '',
    files: { 'sub/File': 'FROM busybox\nCOPY . /c\nRUN ls /c', x: '1' },
    query: 'dockerfile=sub/File',
  },
  {
    why: 'no file',
    file: '',
    files: { x: '1' },
    differs: { why: 'a bad context is 400', status: 400, says: 'Cannot locate specified Dockerfile: Dockerfile' },
  },
  { why: 'an empty file', file: '', files: { Dockerfile: '' } },
  { why: 'nothing but comments', file: '# syntax=x\n# nothing\n' },
  { why: 'an escape of its own', file: '# escape=`\nFROM busybox\nRUN echo a `\n  b\nENV A=`$B\nRUN echo c:\\d' },
  { why: 'a wrong escape', file: '# escape=x\nFROM busybox' },
  { why: 'an unknown instruction', file: 'FROM busybox\nFOO bar' },
  { why: 'an instruction in front of FROM', file: 'RUN x\nFROM busybox' },
  { why: 'an unknown flag', file: 'FROM busybox\nRUN true\nCOPY --what=1 a b' },
  { why: 'a flag without a value', file: 'FROM busybox\nCOPY --chown a b' },
  { why: 'a bad stage name', file: 'FROM busybox AS 1a' },
  { why: 'words that are too many', file: 'FROM busybox x' },
  { why: 'a bad port', file: 'FROM busybox\nEXPOSE http' },
  { why: 'a bad signal', file: 'FROM busybox\nSTOPSIGNAL nope' },
  { why: 'a bad expansion', file: 'FROM busybox\nENV A=${B' },
  { why: 'a bad modifier', file: 'FROM busybox\nENV A=${B:*c}' },
  { why: 'an expansion with a message', file: 'FROM busybox\nENV A=${B:?words here}' },
  {
    why: 'modifiers',
    file: 'FROM busybox\nENV A=x\nENV B=${A:-y}${C:-y}${A:+z}${C:+z}${C:-${A}}\nENV D=\\$A E="\\$A" F="a\\tb" G=\'${A}\' H=${A}x$A',
  },
  { why: 'an ENV without a value', file: 'FROM busybox\nENV A' },
  { why: 'an ENV with a word without =', file: 'FROM busybox\nENV A=b C' },
  { why: 'JSON with something behind it', file: 'FROM busybox\nCMD ["a"] x\nENTRYPOINT ["a", 1]' },
  { why: 'an empty line in an instruction', file: 'FROM busybox\nRUN echo a \\\n\n  b' },
  { why: 'a blank base', file: 'ARG X\nFROM $X' },
  {
    why: 'files named like marks',
    file: `FROM busybox\nCOPY . /dest/\n${LIST}`,
    files: { '.hidden': 'h', 'Dockerfile.x': 'x' },
  },
  {
    why: 'ADD of archives',
    file: `FROM busybox\nADD plain.tar /dest/\nADD a.txt /dest/\nADD empty.tar /dest/empty\n${LIST}`,
    files: { 'a.txt': 'a', 'empty.tar': { content: Buffer.alloc(1024) } },
  },
  ...['gz', 'bz2', 'xz'].map((ending) => ({
    why: `ADD of an archive with ${ending}`,
    file: `FROM busybox\nADD plain.tar.${ending} /dest/\nCOPY plain.tar.${ending} /dest/kept\n${LIST}`,
  })),
  {
    why: 'an ignore file',
    file: 'FROM busybox\nCOPY . /dest\nRUN ls -a /dest',
    files: { '.dockerignore': 'Dockerfile\n.dockerignore\n', x: '1' },
  },
  {
    why: 'limits',
    file: "FROM busybox\nRUN df /dev/shm | tail -1 | awk '{print $2}'",
    query: 'memory=67108864&cpushares=512&shmsize=4194304&networkmode=none',
  },
  {
    why: 'limits of processors and swap',
    file: `FROM busybox\nRUN ${['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us', 'cpu/cpu.shares', 'cpuset/cpuset.cpus', 'memory/memory.limit_in_bytes', 'memory/memory.memsw.limit_in_bytes', 'cpu.max', 'cpu.weight', 'cpuset.cpus', 'memory.max', 'memory.swap.max'].map((name) => `tail -n 1 /sys/fs/cgroup/${name} 2>/dev/null`).join('; ')}; true`,
    query:
      'memory=67108864&memswap=134217728&cpushares=256&cpuperiod=50000&cpuquota=25000&cpusetcpus=0&networkmode=none',
  },
  {
    why: 'containers that stay',
    file: 'FROM busybox\nENTRYPOINT ["echo"]\nCMD echo x\nENV A=b\nWORKDIR /w\nEXPOSE 80\nVOLUME /v\nRUN true',
    query: 'rm=0',
  },
  { why: 'a network', file: 'FROM busybox\nRUN ls /sys/class/net', query: 'networkmode=none' },
  { why: 'hosts', file: 'FROM busybox\nRUN grep extra /etc/hosts', query: 'extrahosts=extra:10.1.2.3' },
  {
    why: 'ulimits',
    file: 'FROM busybox\nRUN ulimit -n',
    query: `ulimits=${encode([{ Name: 'nofile', Soft: 100, Hard: 200 }])}`,
  },
  { why: 'security options', file: 'FROM busybox', query: 'securityopt=x' },
  { why: 'squash', file: 'FROM busybox', query: 'squash=1' },
  {
    why: 'bad arguments',
    file: 'FROM busybox',
    query: 'buildargs=x',
    differs: { why: 'the words of another reader of JSON', status: 400, says: 'error reading build args' },
  },
  { why: 'RUN on nothing', file: 'FROM scratch\nRUN true' },
  { why: 'RUN of an empty list on nothing', file: 'FROM scratch\nRUN []' },
  {
    why: 'RUN of an empty list',
    file: 'FROM busybox\nRUN []\nCMD ["sh", "-c", "echo made > /made"]\nRUN [ ]\nRUN cat /made\nENTRYPOINT ["echo", "entry"]\nRUN []\nENTRYPOINT []\nCMD ["false"]\nRUN []',
  },
  { why: 'RUN on settings alone', file: 'FROM scratch\nENV A=b\nRUN true' },
  { why: 'FROM scratch alone', file: 'FROM scratch' },
  { why: 'settings of nothing', file: 'FROM scratch\nENV A=b\nCMD ["x"]' },
  { why: 'a file of nothing', file: 'FROM scratch\nCOPY a.txt /\nWORKDIR /w', files: FILES },
  { why: 'volumes that keep nothing', file: 'FROM busybox\nVOLUME /data\nRUN echo x > /data/x\nRUN ls /data' },
  {
    why: 'text that is not ASCII',
    file: 'FROM busybox\nLABEL ä=ö\nENV Ü="é 日本"\nRUN echo "$Ü"\nCMD ["ß\\n\\u00e9"]',
  },
];
