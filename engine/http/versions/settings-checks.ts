import type { SettingsChecks } from '../../config/check.ts';
import { refuseIf } from '../../lib/errors.ts';
import { isBelow, NEWEST, OLDEST, parseApiVersion, type ApiVersion } from './api-version.ts';

/** Checks of the API's versions that the schema of the settings cannot express. */
export const apiSettingsChecks: SettingsChecks = {
  'min-api-version': (settings) => {
    const [min, max] = [read(settings['min-api-version']), parseApiVersion(settings['max-api-version'])];
    const isAbove = max !== undefined && isBelow(max, min);
    refuseIf(isAbove, `${min} is newer than the max-api-version ${max}`);
  },
  'max-api-version': (settings) => void read(settings['max-api-version']),
  'default-api-version': (settings) => {
    if (settings['default-api-version'] === '') return;
    const version = read(settings['default-api-version']);
    const [min, max] = [parseApiVersion(settings['min-api-version']), parseApiVersion(settings['max-api-version'])];
    const isOutside = (min !== undefined && isBelow(version, min)) || (max !== undefined && isBelow(max, version));
    refuseIf(isOutside, `${version} is not between the min-api-version ${min} and the max-api-version ${max}`);
  },
};

function read(text: string): ApiVersion {
  const version = parseApiVersion(text);
  const isKnown = version !== undefined && !isBelow(version, OLDEST) && !isBelow(NEWEST, version);
  refuseIf(!isKnown, `"${text}" is not a version of the API from ${OLDEST} to ${NEWEST}`);
  return version!;
}
