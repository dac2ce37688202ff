/**
 * The text with its control characters visible, because names and commands of containers must not control the terminal.
 */
export function visible(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the function searches for them
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, escapeCharacter);
}

/** Like `visible`, for texts of several lines. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

function escapeCharacter(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  if (character === '\r') return '\\r';
  const code = character.codePointAt(0)!;
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`;
}
