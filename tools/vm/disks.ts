import { cpSync, existsSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { CACHE, hashOf, makeDisk, replace, repository, run } from './parts.ts';

/** Files that daemons and tests load: at their start, later or in a thread. */
const CACHED = '{cli,client,engine,limiter,testing,tests,tools}/**/*.ts';

/** Node and the npm packages, which change less often than the rest of the checkout. */
export async function modulesDisk(work: string): Promise<string> {
  const node = dirname(dirname(process.execPath));
  const disk = join(CACHE, `modules-${hashOf(node, '../../package-lock.json')}`);
  if (existsSync(disk)) return disk;
  const root = join(work, 'modules');
  const inside = join(root, '.node/node_modules', basename(node), 'bin');
  mkdirSync(inside, { recursive: true });
  cpSync(process.execPath, join(inside, 'node'));
  await run('cp', ['-a', join(repository, 'node_modules'), root]);
  await makeDisk(root, join(work, 'modules-disk'), '1500M');
  replace('modules-*', join(work, 'modules-disk'), disk);
  return disk;
}

/** The checkout itself and the words of the job, as a disk that is an archive: made anew for every boot. */
export async function checkoutDisk(job: readonly string[], work: string): Promise<string> {
  const disk = join(work, 'checkout');
  writeFileSync(join(work, 'vm-job'), job.map((word) => `${word}\n`).join(''));
  await fillCompileCache(join(work, 'compile-cache'));
  const left = ['node_modules', '.node', '.git', 'build'].map((name) => `--exclude=./${name}`);
  const options = [`--file=${disk}`, '--owner=0', '--group=0', '--anchored'];
  await run('tar', ['--create', ...options, ...left, '-C', repository, '.']);
  const names = ['gantry-shim', 'gantry-resolver', 'gantry-proxy', 'gantry-init'];
  const programs = ['-C', repository, ...names.map((name) => `./build/${name}`)];
  await run('tar', ['--append', ...options, ...programs, '-C', work, 'vm-job', 'compile-cache']);
  return disk;
}

/**
 * Node's compile cache of the checkout. Without it each daemon in the machine takes the types out of its files by
 * WebAssembly, which lasts minutes there, and in which Node 26 now and then aborts on a slow machine
 * (Runtime_WasmTriggerTierUp: "it->second.Size() > offset"), also in a thread that is started later. The cache goes by
 * paths: those of the machine, in a root of its own that ends with its namespace.
 */
async function fillCompileCache(cache: string): Promise<void> {
  const root = `${cache}-root`;
  const enter = `for name in usr lib lib64 proc sys; do mkdir -p "$1/$name"; mount --rbind "/$name" "$1/$name"; done
    mkdir "$1/gantry" "$1/node" "$1/cache"
    mount --bind "$2" "$1/gantry"; mount --bind "$3" "$1/node"; mount --bind "$4" "$1/cache"
    NODE_COMPILE_CACHE=/cache exec chroot "$1" /node/node --input-type=module --eval "$5"`;
  const files = globSync(CACHED, { cwd: repository, exclude: ['**/node_modules'] });
  // A module that lacks an import is not linked: it is compiled with all that it imports, and nothing of it runs.
  const imports = files.map((file) => `import 'file:///gantry/${file}';`).join('');
  const module = `data:text/javascript,${imports}import { lacks } from 'data:text/javascript,';`;
  const program = `import(${JSON.stringify(module)}).catch((error) => {
    if (!error.message.includes("'lacks'")) throw error;
    process.exit(0);
  });`;
  mkdirSync(root);
  mkdirSync(cache);
  const places = [root, repository, dirname(process.execPath), cache];
  await run('unshare', ['--mount', 'sh', '-euc', enter, 'sh', ...places, program]);
}
