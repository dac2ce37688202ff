import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startServer } from '../processes.ts';

/** As large as an ordinary answer of such an API. */
const ANSWER = JSON.stringify({ id: 1, name: 'gantry', description: 'x'.repeat(900) });

/** Starts the server behind all proxies. Returns the id of its one process. */
export async function startUpstream(undo: AsyncDisposableStack, folder: string, port: number): Promise<number> {
  return await start(
    undo,
    join(folder, 'upstream'),
    `server {
    listen 127.0.0.1:${port};
    location / { default_type application/json; add_header ETag '"1"'; return 200 '${ANSWER}'; }
  }`,
  );
}

/** nginx as a proxy with `limit_req` and `limit_conn`. Returns the id of its one process. */
export async function startNginxProxy(
  undo: AsyncDisposableStack,
  folder: string,
  port: number,
  upstreamPort: number,
): Promise<number> {
  return await start(
    undo,
    join(folder, 'nginx'),
    `limit_req_zone $http_authorization zone=requests:16m rate=1000000r/s;
  limit_conn_zone $http_authorization zone=connections:16m;
  upstream api { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      limit_req zone=requests burst=1000 nodelay; limit_conn connections 100;
      proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection '';
    }
  }`,
  );
}

async function start(undo: AsyncDisposableStack, folder: string, servers: string): Promise<number> {
  await mkdir(folder);
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  ${servers}
}
`,
  );
  return startServer(undo, 'nginx', ['-c', file, '-e', `${folder}/error.log`]).pid!;
}
