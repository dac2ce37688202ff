import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Operator } from '../operator.ts';
import type { History } from './history.ts';

const html = readFileSync(join(import.meta.dirname, 'page.html'), 'utf8');

/** The page for people: one file, whose script and style are the only ones that a browser runs. */
export const PAGE = {
  body: html,
  headers: {
    'content-security-policy':
      `default-src 'none'; script-src ${hashOf('script')}; style-src ${hashOf('style')}; connect-src 'self'; ` +
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  },
} as const;

function hashOf(element: 'script' | 'style'): string {
  const [, text = ''] = new RegExp(`<${element}[^>]*>([^]*?)</${element}>`).exec(html) ?? [];
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

const MAX_LIMITED = 200;

/** Data of the page. */
export async function pageData(operator: Operator, history: History): Promise<object> {
  const [limited, top, minutes, counts] = await Promise.all([
    operator.limited(),
    operator.top(),
    history.minutes(),
    operator.counts(),
  ]);
  const longest = limited.toSorted((one, other) => other.untilSeconds - one.untilSeconds);
  return {
    now: Math.floor(Date.now() / 1000),
    underWay: counts.underWay,
    connections: counts.openConnections,
    limited: longest.slice(0, MAX_LIMITED),
    limitedInAll: limited.length,
    top: top.slice(0, 50),
    history: minutes,
  };
}
