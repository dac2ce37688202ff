import type { Container } from './store.ts';

/**
 * The labels and variables that the log options `labels`, `env` and their `-regex` forms choose, and the `tag`.
 *
 * dockerd writes them into every line. They never change while the container exists, so they are added when it is read.
 */
export function logAttributes({ id, name, imageName, imageId, config, hostConfig }: Container): Record<string, string> {
  const options: Readonly<Record<string, string>> = hostConfig.LogConfig.Config ?? {};
  const variables = config.Env.map((variable): [string, string] => {
    const [key = '', ...value] = variable.split('=');
    return [key, value.join('=')];
  });
  const tag = options['tag']?.replaceAll(/\{\{\s*\.(\w+)\s*\}\}/g, (written, field: string) => {
    const fields: Record<string, string> = {
      ID: id.slice(0, 12),
      FullID: id,
      Name: name,
      ImageName: imageName,
      ImageID: imageId.replace('sha256:', '').slice(0, 12),
      ImageFullID: imageId,
      DaemonName: 'docker',
    };
    return fields[field] ?? written;
  });
  return {
    ...chosen(Object.entries(config.Labels ?? {}), options['labels'], options['labels-regex']),
    ...chosen(variables, options['env'], options['env-regex']),
    ...(tag !== undefined && tag !== '' && { tag }),
  };
}

function chosen(entries: [string, string][], names = '', pattern = ''): Record<string, string> {
  const wanted = new Set(names.split(','));
  const matching = pattern === '' ? undefined : new RegExp(pattern);
  return Object.fromEntries(entries.filter(([key]) => wanted.has(key) || matching?.test(key) === true));
}
