import type { Api } from '../api.ts';

const WEB = 'httpd -f -p 80 -h /www';
const PAGES = [
  'mkdir -p /www/cgi-bin; echo "$VERSION" > /www/index.html',
  String.raw`printf '#!/bin/sh\nsleep 1; printf "Content-Type: text/plain\\r\\n\\r\\n$VERSION\\n"\n' > /www/cgi-bin/slow`,
  'chmod +x /www/cgi-bin/slow',
].join('; ');

/** Serves `$VERSION` as a page, also slowly, and ends at once when it is told to, whatever is under way. */
export const HASTY_WEB = ['sh', '-c', `${PAGES}; ${WEB} & trap "kill $!; exit 0" TERM; wait`];

/** Goes on serving for three seconds when it is told to end. */
export const POLITE_WEB = ['sh', '-c', `${PAGES}; ${WEB} & trap "sleep 3; kill $!; exit 0" TERM; wait; sleep 60`];

/** An image `web` of busybox that is healthy when it serves. */
export async function makeWebImage(api: Pick<Api, 'post' | 'delete'>): Promise<void> {
  const made = await api.post<{ Id: string }>('/containers/create', { Image: 'busybox', Cmd: ['true'] });
  const check = 'HEALTHCHECK --interval=0.5s --retries=60 CMD wget -q -O /dev/null http://127.0.0.1/';
  const path = `/commit?container=${made.body.Id}&repo=web&changes=${encodeURIComponent(check)}`;
  const answer = await api.post(path);
  if (answer.status !== 201) throw new Error(`commit answered ${answer.status}: ${answer.raw.toString()}`);
  await api.delete(`/containers/${made.body.Id}`);
}
