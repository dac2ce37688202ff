/** Writes the list of the gateway's settings into its guide; a test fails if the list is outdated. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { settingsReference } from '@gantry/gateway/config/reference.ts';

const guide = join(import.meta.dirname, '../docs/gateway.md');
const [before = '', rest = ''] = readFileSync(guide, 'utf8').split('<!-- settings -->');
const after = rest.split('<!-- end of settings -->')[1] ?? '';
writeFileSync(guide, `${before}<!-- settings -->\n\n${settingsReference()}\n\n<!-- end of settings -->${after}`);
