import { Type, type Static } from 'typebox';

const strings = (description: string, initial: string[] = []) =>
  Type.Array(Type.String(), { default: initial, description });
const text = (description: string, initial = '') => Type.String({ default: initial, description });
const flag = (description: string, initial = false) => Type.Boolean({ default: initial, description });

/** The default limit of containers without one of their own. */
const Ulimit = Type.Object(
  { Name: Type.Optional(Type.String()), Soft: Type.Integer({ minimum: -1 }), Hard: Type.Integer({ minimum: -1 }) },
  { additionalProperties: false },
);

const Runtime = Type.Object(
  {
    path: Type.String({ minLength: 1, description: 'the program, absolute or in the PATH' }),
    runtimeArgs: Type.Optional(Type.Array(Type.String())),
  },
  { additionalProperties: false },
);

/** Every setting of the daemon: the keys are those of the configuration file, which are dockerd's. */
export const ConfigFile = Type.Object(
  {
    hosts: strings('where to listen: unix:///path, tcp://address:port, or fd:// for the sockets of systemd', [
      'unix:///run/gantry/gantry.sock',
    ]),
    'data-root': text('folder of the persistent state', '/var/lib/gantry'),
    'exec-root': text('folder of the state that ends with the machine', '/run/gantry'),
    pidfile: text('file for the process id of the daemon', '/run/gantry.pid'),
    group: text('group of the Unix sockets; empty: that of the daemon'),
    bridge: text('bridge of the containers; none: no such network', 'gantry0'),
    bip: text('address and prefix of the bridge, such as 172.30.0.1/16; empty: the first free range'),
    ipv6: flag('give containers on the bridge an address of IPv6 too, of the range fixed-cidr-v6'),
    'fixed-cidr-v6': text('range of IPv6 for containers on the bridge, such as fd00:1::/64'),
    'default-address-pools': strings(
      'where subnets of networks are taken from, as base=10.10.0.0/16,size=24; default: 172.17.0.0/16 to 172.31.0.0/16, then 192.168.0.0/16 in parts of /20',
    ),
    mtu: Type.Integer({ default: 0, minimum: 0, maximum: 65535, description: 'MTU of the containers; 0: automatic' }),
    tls: flag('use TLS on tcp hosts'),
    tlsverify: flag('use TLS on tcp hosts and accept only clients with a certificate of the CA'),
    tlscacert: text('certificates of the CA that clients are checked against'),
    tlscert: text('certificate of the daemon'),
    tlskey: text('key of the certificate'),
    'insecure-tcp': flag(
      'allow tcp hosts without TLS on addresses other than loopback; everyone who can reach them gets root',
    ),
    'api-rate-limit': text('JSON file with the tokens and the limits of clients over tcp; empty: no limits'),
    'metrics-addr': text(
      'address:port at which metrics for Prometheus are served, as /metrics, to all who reach it; empty: none',
    ),
    page: text(
      '127.0.0.1:port or [::1]:port, with `tlsverify` any address, at which the page is served; empty: a free port, once `gantry page` asks',
    ),
    'page-read-only': flag('let no page change anything'),
    'min-api-version': text('oldest version of the API that is served', '1.12'),
    'max-api-version': text('newest version of the API that is served', '1.55'),
    'default-api-version': text('version of requests without one; empty: the newest'),
    'insecure-registries': strings(
      'registries, by host or CIDR, whose certificates are not checked and that may speak plain HTTP; loopback always may',
    ),
    'cdi-spec-dirs': strings(
      'folders with descriptions of devices by their vendors; a later one goes before an earlier one',
      ['/etc/cdi', '/var/run/cdi'],
    ),
    'registry-mirrors': strings('URLs that are asked for images of docker.io first'),
    'search-index': text('URL of the index that is searched for images', 'https://index.docker.io'),
    'registry-certs-dir': text(
      'folder with a folder per registry: authorities and client certificates',
      '/etc/docker/certs.d',
    ),
    'max-concurrent-downloads': Type.Integer({
      default: 3,
      minimum: 1,
      description: 'layers that are downloaded at the same time',
    }),
    'max-concurrent-uploads': Type.Integer({
      default: 5,
      minimum: 1,
      description: 'layers of a push that are uploaded at the same time',
    }),
    'api-cors-header': text('value of Access-Control-Allow-Origin; empty: no CORS'),
    'log-level': Type.Union(
      ['debug', 'info', 'warn', 'error', 'fatal'].map((level) => Type.Literal(level)),
      { default: 'info', description: 'debug, info, warn, error or fatal' },
    ),
    debug: flag('the same as the log level debug'),
    'log-driver': text('log driver of containers without one of their own', 'json-file'),
    'log-opts': Type.Record(Type.String(), Type.String(), {
      default: {},
      description: 'options of the log driver, such as max-size=10m',
    }),
    dns: strings('name servers of the containers'),
    'dns-opts': strings('resolver options of the containers'),
    'dns-search': strings('search domains of the containers'),
    'default-ulimits': Type.Record(Type.String(), Ulimit, {
      default: {},
      description: 'limits of containers without their own, such as nofile=1024:2048',
    }),
    'authorization-plugins': strings('plugins that must allow every request'),
    'plugin-folders': strings('folders in which plugins are found by name', [
      '/run/docker/plugins',
      '/etc/docker/plugins',
      '/usr/lib/docker/plugins',
    ]),
    labels: strings('labels of the daemon, key=value'),
    'node-generic-resources': strings(
      'resources of this node that services can reserve: SSD=5 for an amount, GPU=name for one of them',
    ),
    runtimes: Type.Record(Type.String(), Runtime, {
      default: {},
      description: 'further OCI runtimes, name=path; runc and crun are known',
    }),
    'default-runtime': text('OCI runtime of containers without one; empty: crun where it works, else runc'),
    'cgroup-driver': Type.Union(
      ['', 'systemd', 'cgroupfs'].map((driver) => Type.Literal(driver)),
      {
        default: '',
        description: 'who makes the cgroups of containers, systemd or cgroupfs; empty: systemd where it owns version 2',
      },
    ),
    'exec-opts': strings("dockerd's word for the cgroup driver: native.cgroupdriver=systemd or cgroupfs"),
    'cgroup-parent': text(
      'parent cgroup of containers without one: a path, or with systemd a slice; empty: /docker or system.slice',
    ),
    'userns-remap': text(
      "user[:group] whose subordinate ids are those of containers; default: the user dockremap; empty: the host's ids",
    ),
    'cpu-rt-period': Type.Integer({
      default: 0,
      minimum: 0,
      description: 'microseconds in which real-time processes of all containers get cpu-rt-runtime; 0: as it is',
    }),
    'cpu-rt-runtime': Type.Integer({
      default: 0,
      minimum: 0,
      description: 'microseconds that real-time processes of all containers get together; 0: as it is, mostly none',
    }),
    'build-cache-size': Type.Integer({
      default: 10 * 2 ** 30,
      minimum: 0,
      description: 'limit in bytes of all caches of RUN --mount=type=cache, and of all kept contexts',
    }),
    'live-restore': flag('keep containers running when the daemon ends', true),
    'shutdown-timeout': Type.Integer({
      default: 15,
      minimum: 0,
      description: 'seconds that containers have to end when the daemon ends and live-restore is off',
    }),
  },
  { additionalProperties: false },
);

export type ConfigFile = Static<typeof ConfigFile>;
export type ConfigKey = keyof ConfigFile;
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal';
