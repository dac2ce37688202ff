/** Compose files of version 3.8 in the manner of real ones, with busybox for their programs. */
export const STACKS: Readonly<Record<string, string>> = {
  // A vote with a queue, workers and a database on one kind of node.
  vote: `
version: "3.8"
services:
  redis:
    image: busybox
    command: sleep 1000
    networks: [frontend]
    deploy:
      replicas: 1
      update_config: {parallelism: 2, delay: 10s}
      restart_policy: {condition: on-failure}
  db:
    image: busybox
    command: sleep 1000
    environment: {POSTGRES_USER: postgres, POSTGRES_PASSWORD: postgres}
    volumes: ["db-data:/var/lib/postgresql/data"]
    networks: [backend]
    deploy:
      placement: {constraints: [node.role == manager]}
  vote:
    image: busybox
    command: sleep 1000
    ports: ["5000:80"]
    networks: [frontend]
    depends_on: [redis]
    deploy:
      replicas: 2
      update_config: {parallelism: 2, order: start-first, failure_action: rollback, monitor: 5s, max_failure_ratio: 0.3}
      rollback_config: {parallelism: 1, delay: 2s, failure_action: continue}
      restart_policy: {condition: on-failure, delay: 5s, max_attempts: 3, window: 120s}
  worker:
    image: busybox
    command: sleep 1000
    networks: {frontend: {aliases: [jobs]}, backend: {}}
    deploy:
      mode: replicated
      replicas: 1
      labels: [APP=VOTING]
      placement:
        max_replicas_per_node: 2
        preferences: [{spread: node.labels.zone}]
      resources:
        limits: {cpus: "0.50", memory: 64M}
        reservations: {cpus: "0.05", memory: 20M}
networks:
  frontend:
  backend: {driver: overlay, attachable: true, labels: {tier: back}}
volumes:
  db-data:
`,
  // A blog with secrets, configs and a health check.
  blog: `
version: "3.8"
services:
  web:
    image: busybox
    entrypoint: ["sh", "-c"]
    command: ["test -s /run/secrets/password && test -s /etc/site.conf && sleep 1000"]
    hostname: blog
    user: root
    working_dir: /tmp
    stop_grace_period: 1s
    stop_signal: SIGTERM
    init: true
    env_file: [./env]
    environment: [A=1, B=two]
    labels: {com.example.a: b}
    secrets:
      - password
      - {source: token, target: site-token, uid: "1", gid: "2", mode: 0400}
    configs:
      - {source: site, target: /etc/site.conf, mode: 0444}
    healthcheck: {test: ["CMD", "true"], interval: 30s, timeout: 10s, retries: 2, start_period: 1s}
    extra_hosts: ["cache:10.9.9.9"]
    dns: [9.9.9.9]
    cap_drop: [NET_RAW]
    sysctls: {net.ipv4.ip_forward: "0"}
    ulimits: {nofile: {soft: 1000, hard: 2000}, nproc: 100}
    logging: {driver: json-file, options: {max-size: 1m}}
    ports:
      - {target: 80, published: 8088, protocol: tcp, mode: ingress}
    deploy: {endpoint_mode: vip, labels: {role: front}}
secrets:
  password: {file: ./password}
  token: {file: ./token, labels: {kind: api}}
configs:
  site: {file: ./site.conf}
`,
  // An agent on each node, and a service that is found by the addresses of its tasks.
  agents: `
version: "3.8"
services:
  agent:
    image: busybox
    command: ["sleep", "1000"]
    read_only: true
    tmpfs: [/run]
    volumes:
      - {type: bind, source: /etc, target: /host/etc, read_only: true}
      - {type: volume, source: state, target: /state, volume: {nocopy: true}}
      - {type: tmpfs, target: /memory, tmpfs: {size: 1048576}}
    networks: [mesh]
    deploy: {mode: global}
  discovery:
    image: busybox
    command: ["sleep", "1000"]
    tty: true
    networks: [mesh]
    deploy: {endpoint_mode: dnsrr, replicas: 2}
  idle:
    image: busybox
    deploy: {replicas: 0}
networks:
  mesh:
    driver: overlay
    internal: true
    ipam: {config: [{subnet: 10.77.0.0/24}]}
volumes:
  state: {labels: {keep: "yes"}}
`,
};

export const STACK_FILES: Readonly<Record<string, string>> = {
  env: 'FROM_FILE=yes\n',
  password: 'secret\n',
  token: 'token\n',
  'site.conf': 'site\n',
};
