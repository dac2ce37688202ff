/** Files of a project: written for this test, in the form that a well-known project's own files have. */
export type KnownProject = Readonly<{
  name: string;
  /** Images that stand-ins are tagged as. */
  bases: readonly string[];
  files: Readonly<Record<string, string>>;
  /** Folders with a Dockerfile that docker's command line builds, with build arguments. */
  builds?: Readonly<Record<string, readonly string[]>>;
  /** Compose files, the later ones on top of the first. */
  compose?: readonly string[];
}>;

const ENTRYPOINT = '#!/bin/sh\nset -e\nexec "$@"\n';

export const KNOWN_PROJECTS: readonly KnownProject[] = [
  {
    name: 'redis',
    bases: ['alpine:3.20'],
    builds: { '.': [] },
    files: {
      'docker-entrypoint.sh': ENTRYPOINT,
      Dockerfile: `#
# GENERATED: DO NOT EDIT
#

FROM alpine:3.20

# the ids first
RUN set -eux; \\
# the group 999 is taken here
	addgroup -S -g 1000 redis; \\
	adduser -S -G redis -u 999 redis

ENV REDIS_VERSION 7.2.5
ENV REDIS_DOWNLOAD_URL http://download.example.test/redis-7.2.5.tar.gz
RUN set -eux; \\
	\\
	apk add --no-cache --virtual .build-deps \\
		coreutils \\
# a real wget, because of:
#   + wget: bad header line:     XxhODalH: btu; path=/; Max-Age=900
		wget \\
	; \\
	case "\${dpkgArch##*-}" in \\
		amd64 | i386) flags="$flags --with-page=12" ;; \\
		*) flags="$flags --with-page=16" ;; \\
	esac; \\
	sed -ri 's!^( *create[(]"protected-mode",.*, *)1( *,.*[)],)$!\\10\\2!' /usr/src/redis/src/config.c; \\
	find /usr/local/bin/redis* -maxdepth 0 \\
		-exec sh -eux -c ' \\
			md5="$(md5sum "$1" | cut -d" " -f1)"; \\
			test "$md5" = "$serverMd5"; \\
		' -- '{}' ';' \\
	; \\
	redis-cli --version

RUN mkdir /data && chown redis:redis /data
VOLUME /data
WORKDIR /data

COPY docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]

EXPOSE 6379
CMD ["redis-server"]
`,
    },
  },
  {
    name: 'postgres',
    bases: ['debian:trixie-slim'],
    builds: { '.': [] },
    files: {
      'docker-entrypoint.sh': ENTRYPOINT,
      'docker-ensure-initdb.sh': ENTRYPOINT,
      Dockerfile: `FROM debian:trixie-slim

RUN set -eux; \\
	groupadd -r postgres --gid=999; \\
# see https://example.test/?p=postgresql-common.git;a=blob;f=debian/preinst;hb=69da
	useradd -r -g postgres --uid=999 --home-dir=/var/lib/postgresql --shell=/bin/bash postgres

RUN set -eux; \\
	if [ -f /etc/dpkg/dpkg.cfg.d/docker ]; then \\
		grep -q '/usr/share/locale' /etc/dpkg/dpkg.cfg.d/docker; \\
		sed -ri '/\\/usr\\/share\\/locale/d' /etc/dpkg/dpkg.cfg.d/docker; \\
		! grep -q '/usr/share/locale' /etc/dpkg/dpkg.cfg.d/docker; \\
	fi; \\
	echo 'en_US.UTF-8 UTF-8' >> /etc/locale.gen
ENV LANG en_US.utf8

RUN mkdir /docker-entrypoint-initdb.d
ENV PG_MAJOR 18
ENV PATH $PATH:/usr/lib/postgresql/$PG_MAJOR/bin
ENV PG_VERSION 18.1-1.pgdg13+2

RUN install --verbose --directory --owner postgres --group postgres --mode 3777 /var/run/postgresql
ENV PGDATA /var/lib/postgresql/18/docker
VOLUME /var/lib/postgresql

COPY docker-entrypoint.sh docker-ensure-initdb.sh /usr/local/bin/
RUN ln -sT docker-ensure-initdb.sh /usr/local/bin/docker-enforce-initdb.sh
ENTRYPOINT ["docker-entrypoint.sh"]

# "fast shutdown" instead of
# a "smart" one
STOPSIGNAL SIGINT

EXPOSE 5432
CMD ["postgres"]
`,
    },
  },
  {
    name: 'nginx',
    bases: ['debian:bookworm-slim'],
    builds: { '.': [] },
    files: {
      'docker-entrypoint.sh': ENTRYPOINT,
      '10-listen.sh': ENTRYPOINT,
      '20-envsubst.sh': ENTRYPOINT,
      '.dockerignore': '*.md\nDockerfile*\n',
      'README.md': 'ignored\n',
      Dockerfile: `FROM debian:bookworm-slim

LABEL maintainer="The Maintainers <docker-maint@example.test>"

ENV NGINX_VERSION   1.26.3
ENV PKG_RELEASE     1~bookworm

RUN set -x \\
# one group for all variants
    && groupadd --system --gid 101 nginx \\
    && useradd --system --gid nginx --home /nonexistent --comment "nginx user" --uid 101 nginx \\
    && NGINX_GPGKEYS="573BFD6B3D8F 8540A6F18833"; \\
    for key in $NGINX_GPGKEYS; do \\
    for server in \\
        hkp://keys.example.test:80 \\
        pgp.example.test \\
    ; do \\
        echo "Fetching $key from $server"; \\
        gpg1 --keyserver "$server" --recv-keys "$key" && found=yes && break; \\
    done; \\
    done; \\
    test -z "$found" && echo >&2 "error: no key" && exit 1; \\
    dpkgArch="$(dpkg --print-architecture)" \\
    && nginxPackages=" \\
        nginx=\${NGINX_VERSION}-\${PKG_RELEASE} \\
        nginx-module-xslt=\${NGINX_VERSION} \\
    " \\
    && ln -sf /dev/stdout /var/log/nginx/access.log \\
    && mkdir /docker-entrypoint.d

COPY docker-entrypoint.sh /
COPY 10-listen.sh /docker-entrypoint.d
COPY 20-envsubst.sh /docker-entrypoint.d
ENTRYPOINT ["/docker-entrypoint.sh"]

EXPOSE 80

STOPSIGNAL SIGQUIT

CMD ["nginx", "-g", "daemon off;"]
`,
    },
  },
  {
    name: 'wordpress',
    bases: ['php:8.4-apache', 'mysql:8.0'],
    builds: { image: [] },
    compose: ['stack.yml'],
    files: {
      'image/docker-entrypoint.sh': ENTRYPOINT,
      'image/wp-config-docker.php': '<?php\n',
      'image/Dockerfile': `FROM php:8.4-apache
RUN set -eux; \\
	docker-php-ext-install -j "$(nproc)" \\
		bcmath \\
		exif \\
	; \\
	out="$(php -r 'exit(0);')"; \\
	[ -z "$out" ]
RUN set -eux; \\
	{ \\
		echo 'opcache.memory_consumption=128'; \\
		echo 'opcache.revalidate_freq=2'; \\
	} > /usr/local/etc/php/conf.d/opcache-recommended.ini
RUN { \\
# https://example.test/errorfunc.constants
		echo 'error_reporting = E_ERROR | E_WARNING'; \\
		echo 'log_errors = On'; \\
	} > /usr/local/etc/php/conf.d/error-logging.ini
RUN find /etc/apache2 -type f -name '*.conf' -exec sed -ri 's/([[:space:]]*LogFormat[[:space:]]+"[^"]*)%h([^"]*")/\\1%a\\2/g' '{}' +
VOLUME /var/www/html
COPY --chown=www-data:www-data wp-config-docker.php /usr/src/wordpress/
COPY docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["apache2-foreground"]
`,
      'stack.yml': `version: '3.1'
services:
  wordpress:
    image: known-wordpress-image
    restart: always
    ports:
      - 8080:80
    environment:
      WORDPRESS_DB_HOST: db
      WORDPRESS_DB_USER: exampleuser
      WORDPRESS_DEBUG: 1
    volumes:
      - wordpress:/var/www/html
  db:
    image: mysql:8.0
    restart: always
    environment:
      MYSQL_DATABASE: exampledb
      MYSQL_RANDOM_ROOT_PASSWORD: '1'
    volumes:
      - db:/var/lib/mysql
volumes:
  wordpress:
  db:
`,
    },
  },
  {
    name: 'jenkins',
    bases: ['debian:trixie-20260803-slim'],
    builds: { '.': ['COMMIT_SHA=abc'] },
    files: {
      'jenkins.sh': ENTRYPOINT,
      'jenkins-support': 'support\n',
      Dockerfile: `ARG LINE=trixie
ARG VERSION=20260803
ARG VARIANT="-slim"
FROM debian:"\${LINE}-\${VERSION}\${VARIANT}" AS jre-and-war

ARG WAR_SHA=1163c4554dc9
SHELL ["/bin/bash", "-e", "-u", "-o", "pipefail", "-c"]
RUN echo "\${WAR_SHA}  /war/jenkins.war" >/tmp/sha \\
  && sha256sum -c --strict /tmp/sha

FROM debian:"\${LINE}-\${VERSION}\${VARIANT}" AS controller

ARG user=jenkins
ARG uid=1000
ARG http_port=8080
ARG agent_port=50000
ARG JENKINS_HOME=/var/jenkins_home
ARG REF=/usr/share/jenkins/ref

ENV JENKINS_HOME=$JENKINS_HOME
ENV JENKINS_SLAVE_AGENT_PORT=\${agent_port}
ENV REF=$REF

RUN mkdir -p $JENKINS_HOME \\
  && chown \${uid} $JENKINS_HOME \\
  && useradd -d "$JENKINS_HOME" -u \${uid} -l -m \${user}

VOLUME $JENKINS_HOME
EXPOSE \${http_port}
EXPOSE \${agent_port}

ENV COPY_LOG=$JENKINS_HOME/copy.log
ENV JAVA_HOME=/opt/java/openjdk
ENV PATH="\${JAVA_HOME}/bin:\${PATH}"
COPY --from=jre-and-war /bin/busybox $JAVA_HOME/bin/java

USER \${user}

COPY jenkins-support /usr/local/bin/jenkins-support
COPY jenkins.sh /usr/local/bin/jenkins.sh

ARG COMMIT_SHA
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/jenkins.sh"]

LABEL \\
    org.opencontainers.image.vendor="The project" \\
    org.opencontainers.image.title="A Docker image" \\
    org.opencontainers.image.revision="\${COMMIT_SHA}"
`,
    },
  },
  {
    name: 'elk',
    bases: ['elastic.example.test/elasticsearch:9.5.1', 'elastic.example.test/filebeat:9.5.1'],
    compose: ['docker-compose.yml', 'extensions/filebeat/filebeat-compose.yml'],
    files: {
      '.env': "ELASTIC_VERSION=9.5.1\n\n## Passwords\n#\nELASTIC_PASSWORD='changeme'\nMONITORING_PASSWORD=''\n",
      'elasticsearch/Dockerfile': `ARG ELASTIC_VERSION

# https://elastic.example.test/
FROM elastic.example.test/elasticsearch:\${ELASTIC_VERSION:-9.0.0}

# Add your plugins here
`,
      'elasticsearch/config/elasticsearch.yml': '---\n',
      'extensions/filebeat/Dockerfile':
        'ARG ELASTIC_VERSION\nFROM elastic.example.test/filebeat:${ELASTIC_VERSION:-9.0.0}\n',
      'extensions/filebeat/config/filebeat.yml': '---\n',
      'docker-compose.yml': `services:
  setup:
    profiles:
      - setup
    build:
      context: elasticsearch/
    network_mode: service:elasticsearch
    depends_on:
      - elasticsearch
  elasticsearch:
    build:
      context: elasticsearch/
      args:
        ELASTIC_VERSION: \${ELASTIC_VERSION}
    volumes:
      - ./elasticsearch/config/elasticsearch.yml:/usr/share/elasticsearch/config/elasticsearch.yml:ro,Z
      - elasticsearch:/usr/share/elasticsearch/data:Z
    ports:
      - 9200:9200
      - 50000:50000/tcp
      - 50000:50000/udp
    environment:
      node.name: elasticsearch
      ES_JAVA_OPTS: -Xms512m -Xmx512m
      ELASTIC_PASSWORD: \${ELASTIC_PASSWORD:-}
      discovery.type: single-node
    networks:
      - elk
    restart: unless-stopped
  sidecar:
    image: elastic.example.test/elasticsearch:9.5.1
    network_mode: service:elasticsearch
    depends_on:
      - elasticsearch
networks:
  elk:
    driver: bridge
volumes:
  elasticsearch:
`,
      'extensions/filebeat/filebeat-compose.yml': `services:
  filebeat:
    build:
      context: extensions/filebeat/
      args:
        ELASTIC_VERSION: \${ELASTIC_VERSION}
    user: root
    command:
      - -e
      - --strict.perms=false
    volumes:
      - ./extensions/filebeat/config/filebeat.yml:/usr/share/filebeat/filebeat.yml:ro,Z
      - type: bind
        source: /proc/mounts
        target: /var/lib/mounts
        read_only: true
    environment:
      BEATS_PASSWORD: \${MONITORING_PASSWORD:-}
    networks:
      - elk
    depends_on:
      - elasticsearch
`,
    },
  },
  {
    name: 'voting',
    bases: ['python:3.11-slim', 'redis:alpine', 'postgres:15-alpine'],
    compose: ['docker-compose.yml'],
    files: {
      'vote/requirements.txt': 'Flask\n',
      'vote/app.py': 'print()\n',
      'vote/Dockerfile': `FROM python:3.11-slim AS base
RUN apt-get update && \\
    apt-get install -y --no-install-recommends curl && \\
    rm -rf /var/lib/apt/lists/*
WORKDIR /usr/local/app
COPY requirements.txt ./requirements.txt
RUN pip install --no-cache-dir -r requirements.txt

FROM base AS dev
RUN pip install watchdog
ENV FLASK_ENV=development
CMD ["python", "app.py"]

FROM base AS final
COPY . .
EXPOSE 80
CMD ["gunicorn", "app:app", "-b", "0.0.0.0:80", "--log-file", "-", "--workers", "4"]
`,
      'healthchecks/redis.sh': ENTRYPOINT,
      'docker-compose.yml': `# no version: formats 2 and 3 in one
services:
  vote:
    build:
      context: ./vote
    depends_on:
      redis:
        condition: service_healthy
    healthcheck:
      test: ["CMD", "curl", "-f", "http://localhost"]
      interval: 15s
      timeout: 5s
      retries: 3
      start_period: 10s
    volumes:
     - ./vote:/usr/local/app
    ports:
      - "8080:80"
      - "127.0.0.1:9229:9229"
    networks:
      - front-tier
      - back-tier
  result:
    image: postgres:15-alpine
    entrypoint: nodemon --inspect=0.0.0.0 server.js
    depends_on:
      db:
        condition: service_healthy
    networks: [front-tier, back-tier]
  redis:
    image: redis:alpine
    volumes:
      - "./healthchecks:/healthchecks"
    healthcheck:
      test: /healthchecks/redis.sh
      interval: "1s"
    networks:
      - back-tier
  db:
    image: postgres:15-alpine
    environment:
      POSTGRES_USER: "postgres"
    volumes:
      - "db-data:/var/lib/postgresql/data"
    healthcheck:
      test: ['CMD', 'pg_isready', '-U', 'postgres']
      interval: "1s"
    networks:
      - back-tier
volumes:
  db-data:
networks:
  front-tier:
  back-tier:
`,
    },
  },
  {
    name: 'prometheus',
    bases: ['prom.example.test/prometheus:v2.36.2', 'prom.example.test/node-exporter', 'grafana/grafana'],
    compose: ['docker-compose.yml'],
    files: {
      'prometheus/prometheus.yml': 'global: {}\n',
      'grafana/config.monitoring': 'GF_SECURITY_ADMIN_PASSWORD=foobar\nGF_USERS_ALLOW_SIGN_UP=false\n',
      'docker-compose.yml': `version: '3.7'
volumes:
    prometheus_data: {}
    grafana_data: {}
networks:
  front-tier:
  back-tier:
services:
  prometheus:
    image: prom.example.test/prometheus:v2.36.2
    volumes:
      - ./prometheus/:/etc/prometheus/
      - prometheus_data:/prometheus
    command:
      - '--config.file=/etc/prometheus/prometheus.yml'
      - '--storage.tsdb.path=/prometheus'
    ports:
      - 9090:9090
    depends_on:
      - cadvisor
    networks:
      - back-tier
    restart: always
  node-exporter:
    image: prom.example.test/node-exporter
    volumes:
      - /proc:/host/proc:ro
      - /sys:/host/sys:ro
      - /:/rootfs:ro
    command:
      - '--path.rootfs=/host'
      - --collector.filesystem.ignored-mount-points
      - "^/(sys|proc|dev|host|etc|rootfs/var/lib/docker/containers)($$|/)"
    ports:
      - 9100:9100
    networks:
      - back-tier
    restart: always
    deploy:
      mode: global
  cadvisor:
    image: prom.example.test/node-exporter
    volumes:
      - /:/rootfs:ro
      - /var/run:/var/run:rw
    networks: [back-tier]
    deploy:
      mode: global
  grafana:
    image: grafana/grafana
    user: "472"
    depends_on:
      - prometheus
    ports:
      - 3000:3000
    volumes:
      - grafana_data:/var/lib/grafana
    env_file:
      - ./grafana/config.monitoring
    networks:
      - back-tier
      - front-tier
    restart: always
`,
    },
  },
  {
    name: 'sentry',
    bases: ['sentry.example.test/sentry:nightly', 'memcached:1.6-alpine', 'confluent.example.test/kafka:7.6'],
    compose: ['docker-compose.yml'],
    files: {
      'sentry/enhance-image.sh': ENTRYPOINT,
      'sentry/Dockerfile': `ARG SENTRY_IMAGE
FROM \${SENTRY_IMAGE}
COPY . /usr/src/sentry
RUN if [ -s /usr/src/sentry/enhance-image.sh ]; then \\
    /usr/src/sentry/enhance-image.sh; \\
    fi
RUN if [ -n "\${http_proxy}" ]; then echo "Acquire::http::proxy \\"\${http_proxy}\\";" >> /etc/apt/apt.conf; fi
`,
      'sentry/entrypoint.sh': ENTRYPOINT,
      'redis.conf': 'save\n',
      'docker-compose.yml': `x-restart-policy: &restart_policy
  restart: unless-stopped
x-healthcheck-defaults: &healthcheck_defaults
  interval: "\${HEALTHCHECK_INTERVAL:-1s}"
  timeout: "\${HEALTHCHECK_TIMEOUT:-90s}"
  retries: \${HEALTHCHECK_RETRIES:-10}
  start_period: 10s
x-file-healthcheck: &file_healthcheck
  test:
    - "CMD"
    - "python3"
    - "-c"
    - |
      import os, sys
      try:
          os.remove('/tmp/health.txt')
      except FileNotFoundError:
          sys.exit(1)
  interval: 1s
x-sentry-defaults: &sentry_defaults
  <<: [*restart_policy]
  image: sentry-self-hosted-local
  build:
    context: ./sentry
    args:
      - SENTRY_IMAGE=sentry.example.test/sentry:nightly
  depends_on:
    memcached: {condition: service_started}
    kafka: {condition: service_healthy}
  entrypoint: "/etc/sentry/entrypoint.sh"
  command: ["run", "web"]
  environment:
    SENTRY_CONF: "/etc/sentry"
    BUNDLE: &ca_bundle "/etc/ssl/certs/ca-certificates.crt"
    REQUESTS_CA_BUNDLE: *ca_bundle
    SENTRY_EVENT_RETENTION_DAYS:
  volumes:
    - "sentry-data:/data"
    - "./sentry:/etc/sentry"
services:
  memcached:
    <<: *restart_policy
    image: "memcached:1.6-alpine"
    command: ["-I", "\${MAX_EXTERNAL_SIZE:-1M}"]
    healthcheck:
      <<: *healthcheck_defaults
      test: echo stats | nc 127.0.0.1 11211
    volumes:
      - type: bind
        read_only: true
        source: ./redis.conf
        target: /usr/local/etc/redis/redis.conf
  kafka:
    <<: *restart_policy
    image: "confluent.example.test/kafka:7.6"
    ulimits:
      nofile:
        soft: 1024
        hard: 2048
    shm_size: 256m
    tmpfs: /scratch
    cap_drop: [MKNOD]
    security_opt: ["no-new-privileges"]
    extra_hosts: ["broker:10.1.2.3"]
    dns_search: example.test
    sysctls: {net.ipv4.ip_unprivileged_port_start: "0"}
    stop_grace_period: 1m30s
    logging:
      driver: json-file
      options: {max-size: 10m, max-file: "3"}
    healthcheck:
      <<: *healthcheck_defaults
      test: ["CMD-SHELL", "nc -z localhost 9092"]
  web:
    <<: *sentry_defaults
    ulimits: {nofile: 4096}
    healthcheck:
      <<: *file_healthcheck
  worker:
    <<: *sentry_defaults
    command: run worker --max-poll-interval-ms \${MAX_POLL_MS:-300000}
volumes:
  sentry-data:
    name: known-sentry-data
`,
    },
  },
  {
    name: 'mastodon',
    bases: ['golang:1.24', 'node:20', 'alpine:3.22', 'postgres:14-alpine', 'redis:7-alpine'],
    builds: { '.': ['GID=992'] },
    compose: ['docker-compose.yml'],
    files: {
      '.env.production': '# comment\nLOCAL_DOMAIN=example.test\nSMTP_PASSWORD=a$b "c"\nEMPTY=\n',
      '.dockerignore': '.env*\ndocker-compose.yml\n',
      'package.json': '{}\n',
      'yarn.lock': '',
      'conf/sample.ini': 'ini\n',
      Dockerfile: `FROM golang:1.24
WORKDIR $GOPATH/src/app
COPY package.json yarn.lock ./
RUN go run build.go build

FROM node:20 AS yarn-installer
ENV NODE_ENV production
ADD package*.json yarn.lock /opt/mastodon/
RUN yarn install --frozen-lockfile

FROM alpine:3.22
LABEL maintainer "Somebody <somebody@example.test>"
ARG UID="991"
ARG GID="991"
ENV PATH=/usr/share/app/bin:/usr/local/bin:/usr/bin:/bin \\
    GF_PATHS_CONFIG="/etc/app/app.ini" \\
    GF_PATHS_HOME="/usr/share/app"
WORKDIR $GF_PATHS_HOME
COPY conf ./conf
RUN groupadd -r -g $GID app && \\
    # an indented comment
    useradd -r -u $UID -g app app && \\

    chmod 777 "$GF_PATHS_HOME"
COPY --from=0 /src/app/package.json ./bin/
COPY --from=yarn-installer --chown=991:991 /opt/mastodon ./modules
USER 991:991
HEALTHCHECK --interval=30s --retries=4 CMD curl -s --fail localhost:3000/health || exit 1
ENTRYPOINT ["/usr/bin/tini", "--"]
EXPOSE 3000 4000/udp
`,
      'docker-compose.yml': `version: '2.4'
services:
  db:
    restart: always
    image: postgres:14-alpine
    shm_size: 256mb
    networks:
      - internal_network
    healthcheck:
      test: ['CMD', 'pg_isready', '-U', 'postgres']
    volumes:
      - ./postgres14:/var/lib/postgresql/data
    environment:
      - 'POSTGRES_HOST_AUTH_METHOD=trust'
    mem_limit: 64m
    cpu_shares: 512
    pids_limit: 200
  web:
    image: known-mastodon
    restart: on-failure:3
    env_file: .env.production
    command: bundle exec puma -C config/puma.rb
    networks:
      external_network: {}
      internal_network: {aliases: [app, "app.internal"]}
    ports:
      - '127.0.0.1:3000:3000'
      - '4000'
    expose: ["5000-5002"]
    depends_on:
      - db
    volumes:
      - ./public/system:/mastodon/public/system:rw
    labels:
      traefik.http.routers.web.rule: Host(\`example.test\`)
    hostname: web
    domainname: example.test
    working_dir: /srv
    read_only: true
    stop_signal: SIGTERM
  sidekiq:
    image: known-mastodon
    volumes_from: [web:ro]
    network_mode: bridge
    pid: host
    privileged: true
networks:
  external_network:
    labels: [tier=front]
  internal_network:
    internal: true
`,
    },
  },
];
