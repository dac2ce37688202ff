import type { SettingsChecks } from '../config/check.ts';
import { checkInsecure, parseMirror, parsePlainUrl } from './connection/endpoints.ts';

export const registrySettingsChecks: SettingsChecks = {
  'insecure-registries': (settings) => {
    for (const registry of settings['insecure-registries']) checkInsecure(registry);
  },
  'registry-mirrors': (settings) => {
    for (const mirror of settings['registry-mirrors']) parseMirror(mirror);
  },
  'search-index': (settings) => {
    parsePlainUrl(settings['search-index'], 'search index');
  },
};
