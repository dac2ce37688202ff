/** Writes docs/gateway-settings.md; a test fails if it is outdated. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { settingsReference } from '@gantry/gateway/config/reference.ts';

writeFileSync(join(import.meta.dirname, '../docs/gateway-settings.md'), settingsReference());
