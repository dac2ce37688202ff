/** Files of a project of format 3, and the commands of compose that run on it. */
export type NewerProject = Readonly<{
  name: string;
  files: Readonly<Record<string, string>>;
  /** Commands of docker before the project, such as an external network. */
  before?: readonly (readonly string[])[];
  /** Words of a command of compose; a failure is compared too. */
  lines: readonly (readonly string[])[];
}>;

/** A program that ends at once when it is stopped. */
const STAY = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
const CHECKED = { interval: '200ms', timeout: '30s', retries: 100 };

const sh = (script: string): string[] => ['sh', '-c', script];
const json = (value: object): string => JSON.stringify(value, undefined, 2);

/** A page that waits for a database and for a job, a worker that is scaled, and a tool that only a profile starts. */
const SHOP: NewerProject = {
  name: 'shop',
  files: {
    '.env': 'GREETING=hello\n',
    'compose.yaml': json({
      'x-stay': { image: 'busybox' },
      services: {
        db: {
          image: 'busybox',
          command: sh('mkdir -p /data; echo rows > /data/rows; exec httpd -f -p 5432 -h /data'),
          volumes: ['rows:/data'],
          networks: { back: { aliases: ['database', 'store'] } },
          healthcheck: { test: 'wget -q -O /dev/null http://127.0.0.1:5432/rows', ...CHECKED },
          stop_signal: 'SIGKILL',
        },
        migrate: {
          image: 'busybox',
          command: sh('wget -q -O - http://database:5432/rows >> /data/migrated'),
          volumes: [{ type: 'volume', source: 'rows', target: '/data' }],
          networks: ['back'],
          depends_on: { db: { condition: 'service_healthy' } },
        },
        web: {
          image: 'busybox',
          command: sh(
            'mkdir /www; echo $$GREETING $$(cat /data/migrated) > /www/index.html; exec httpd -f -p 80 -h /www',
          ),
          environment: { GREETING: '${GREETING:?is missing}', PLAIN: null },
          volumes: ['rows:/data:ro'],
          networks: { front: { ipv4_address: '10.94.0.10' }, back: null },
          ports: [{ target: 80, published: '8094', host_ip: '127.0.0.1', protocol: 'tcp' }],
          expose: ['81/tcp'],
          depends_on: {
            migrate: { condition: 'service_completed_successfully' },
            db: { condition: 'service_started' },
          },
          stop_signal: 'SIGKILL',
        },
        worker: {
          image: 'busybox',
          command: sh(`wget -q -O - http://web/; ${STAY}`),
          networks: ['front'],
          depends_on: ['web'],
          deploy: { replicas: 2, resources: { limits: { cpus: '0.5', memory: '64M' } } },
          restart: 'on-failure:3',
        },
        tool: { image: 'busybox', command: sh(STAY), profiles: ['tools'], networks: ['back'] },
      },
      networks: {
        front: { ipam: { config: [{ subnet: '10.94.0.0/24', gateway: '10.94.0.1' }] } },
        back: { internal: true, labels: { tier: 'low' } },
      },
      volumes: { rows: { labels: { kept: 'yes' } } },
    }),
  },
  lines: [
    ['config', '--quiet'],
    ['config', '--services'],
    ['config', '--format', 'json'],
    ['--profile', 'tools', 'config', '--profiles'],
    ['up', '-d', '--wait', 'db'],
    ['up', '-d'],
    ['exec', '-T', '--index', '2', 'worker', 'wget', '-q', '-O', '-', 'http://web/'],
    ['exec', '-T', 'web', 'sh', '-c', 'nslookup -type=a store >/dev/null && echo found; echo $GREETING'],
    ['exec', '-T', 'web', 'false'],
    ['port', 'web', '80'],
    ['up', '-d'],
    ['logs', '--no-color', 'worker'],
    ['logs', '--no-color', '--no-log-prefix', '--tail', '1', 'worker'],
    ['up', '-d', '--scale', 'worker=4', '--no-recreate'],
    ['scale', 'worker=1'],
    ['--profile', 'tools', 'up', '-d', 'tool'],
    ['run', '--rm', '-T', '--no-deps', '-e', 'A=b', 'worker', 'sh', '-c', 'echo $A; exit 3'],
    ['cp', '.env', 'web:/tmp/copied'],
    ['exec', '-T', 'web', 'cat', '/tmp/copied'],
    ['pause', 'worker'],
    ['unpause', 'worker'],
    ['restart', '-t', '0', 'worker'],
    ['stop', '-t', '0', 'db'],
    ['start', 'db'],
    ['rm', '-s', '-f', 'worker'],
    ['up', '-d', '--force-recreate', '-t', '0', 'web'],
    ['down', '-t', '0'],
    ['up', '-d', 'db'],
    ['exec', '-T', 'db', 'cat', '/data/migrated'],
    ['--profile', '*', 'down', '-v', '-t', '0', '--remove-orphans'],
  ],
};

/** Secrets and configs of files, a hardened service with nearly every setting, and services that share namespaces. */
const VAULT: NewerProject = {
  name: 'vault',
  files: {
    'token.txt': 'a secret\n',
    'app.conf': 'level=high\n',
    'app.env': '# a comment\nFROM_FILE=1\nQUOTED="two words"\n',
    'compose.yaml': json({
      services: {
        app: {
          image: 'busybox',
          command: sh(`id -u; cat /run/secrets/token /run/secrets/named /etc/app.conf; touch /dev/shm/read; ${STAY}`),
          env_file: ['app.env'],
          secrets: ['token', { source: 'token', target: 'named' }],
          configs: [{ source: 'settings', target: '/etc/app.conf' }],
          user: 'daemon',
          working_dir: '/tmp',
          hostname: 'app-host',
          domainname: 'example.test',
          read_only: true,
          tmpfs: ['/run/own:size=1m'],
          volumes: [{ type: 'tmpfs', target: '/scratch', tmpfs: { size: 1048576, mode: 493 } }],
          init: true,
          cap_drop: ['ALL'],
          cap_add: ['NET_BIND_SERVICE'],
          security_opt: ['no-new-privileges:true'],
          ulimits: { nofile: { soft: 1024, hard: 2048 }, nproc: 100 },
          sysctls: { 'net.ipv4.ip_unprivileged_port_start': '0' },
          extra_hosts: ['other.example.test:10.1.2.3'],
          dns: ['10.1.2.4'],
          dns_search: ['example.test'],
          shm_size: '8m',
          mem_limit: '64m',
          mem_reservation: '32m',
          memswap_limit: '128m',
          cpus: 0.5,
          cpu_shares: 512,
          pids_limit: 100,
          oom_score_adj: 100,
          stop_grace_period: '1s',
          labels: { 'org.example.part': 'app' },
          logging: { driver: 'json-file', options: { 'max-size': '1m', 'max-file': '2' } },
          devices: ['/dev/null:/dev/own-null:r'],
          ipc: 'private',
          healthcheck: { test: ['CMD', 'test', '-e', '/dev/shm/read'], ...CHECKED, start_period: '1s' }, // logs are complete
        },
        sidecar: {
          image: 'busybox',
          command: sh(STAY),
          network_mode: 'service:app',
          volumes_from: ['keeper:ro'],
          depends_on: { app: { condition: 'service_healthy', restart: true } },
        },
        keeper: {
          image: 'busybox',
          command: sh(STAY),
          volumes: [
            '/anonymous',
            { type: 'bind', source: './app.conf', target: '/bound.conf', read_only: true },
            { type: 'volume', target: '/named', source: 'kept', volume: { nocopy: true } },
          ],
          restart: 'unless-stopped',
          tty: true,
          stdin_open: true,
          network_mode: 'none',
        },
      },
      secrets: { token: { file: './token.txt' } },
      configs: { settings: { file: './app.conf' } },
      volumes: { kept: { driver_opts: { type: 'tmpfs', device: 'tmpfs', o: 'size=1m' } } },
    }),
  },
  lines: [
    ['config', '--format', 'json'],
    ['config', '--hash', '*'],
    ['config', '--images'],
    ['create'],
    ['up', '-d', '--wait'],
    ['logs', '--no-color', 'app'],
    ['exec', '-T', 'app', 'sh', '-c', 'echo $FROM_FILE $QUOTED; hostname; grep Cap /proc/self/status'],
    ['exec', '-T', 'app', 'touch', '/file'],
    ['exec', '-T', '-u', 'root', '-w', '/run', 'app', 'pwd'],
    ['exec', '-T', 'sidecar', 'sh', '-c', 'hostname; cat /bound.conf; ls -d /named'],
    ['exec', '-T', 'keeper', 'sh', '-c', 'ls /sys/class/net'],
    ['up', '-d'],
    ['restart', '-t', '0', 'app'],
    ['stop', '-t', '0'],
    ['start'],
    ['down', '-v', '-t', '0'],
  ],
};

/** A built service, with an external network and an external volume. */
const SITE: NewerProject = {
  name: 'site',
  files: {
    'web/Dockerfile':
      'FROM busybox\nARG WORD=none\nCOPY . /www\nRUN echo $WORD > /www/word\nCMD exec httpd -f -p 80 -h /www\n',
    'web/index.html': 'first\n',
    'compose.yaml': json({
      name: 'site',
      services: {
        web: {
          build: { context: './web', args: { WORD: 'built' }, labels: { by: 'compose' } },
          image: 'site-web:1',
          networks: { default: null, outside: { aliases: ['www'] } },
          volumes: ['outside:/outside'],
          stop_signal: 'SIGKILL',
        },
        probe: { image: 'busybox', command: sh(STAY), networks: ['outside'], links: ['web:linked'] },
      },
      networks: { outside: { external: true }, default: { driver_opts: { 'com.docker.network.driver.mtu': '1400' } } },
      volumes: { outside: { external: true } },
    }),
    'override.yaml': json({ services: { web: { environment: { A: 'overridden' } } } }),
  },
  before: [
    ['network', 'create', '--subnet', '10.95.0.0/24', 'outside'],
    ['volume', 'create', '--label', 'a=b', 'outside'],
  ],
  lines: [
    ['config', '--volumes'],
    ['build', '-q'],
    ['up', '-d'],
    ['images', '--format', 'json'],
    ['exec', '-T', 'probe', 'wget', '-q', '-O', '-', 'http://www/index.html'],
    ['exec', '-T', 'probe', 'wget', '-q', '-O', '-', 'http://web/word'],
    ['up', '-d', '--build', '-t', '0'],
    ['-f', 'compose.yaml', '-f', 'override.yaml', 'up', '-d', '-t', '0'],
    ['exec', '-T', 'web', 'sh', '-c', 'echo $A; touch /outside/kept'],
    ['down', '-v', '-t', '0', '--rmi', 'local'],
    ['up', '-d', '--no-build'],
    ['ls', '-q'],
    ['down', '-t', '0', '--rmi', 'all'],
  ],
};

/** A built service whose folder compose watches. */
export const WATCHED: Pick<NewerProject, 'files'> = {
  files: {
    'web/Dockerfile': 'FROM busybox\nCOPY . /www\nCMD exec sleep 100000\n',
    'web/index.html': 'first\n',
    'compose.yaml': json({
      name: 'watched',
      services: {
        web: {
          build: './web',
          stop_signal: 'SIGKILL',
          develop: { watch: [{ action: 'sync', path: './web', target: '/www' }] },
        },
      },
    }),
  },
};

export const NEWER_PROJECTS: readonly NewerProject[] = [SHOP, VAULT, SITE];
