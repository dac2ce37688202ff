/** The attributes of a line as a client sees them: `a=1,b=x+y`: sorted, and escaped as Go's url.QueryEscape does it. */
export function describeAttributes(attributes: Record<string, string>): string {
  return Object.keys(attributes)
    .toSorted()
    .map((name) => `${queryEscape(name)}=${queryEscape(attributes[name] ?? '')}`)
    .join(',');
}

function queryEscape(text: string): string {
  return encodeURIComponent(text)
    .replaceAll('%20', '+')
    .replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
}
