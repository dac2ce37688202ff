import { exposedPorts } from '../buildfile/expose.ts';
import { quote } from '../buildfile/go-text.ts';
import type { Instruction, Setting } from '../buildfile/instruction.ts';
import { append } from '../lib/append.ts';
import { goDurationText } from '../lib/notations/go-duration.ts';
import type { StageState } from './stage.ts';

/** Takes over the lines of an earlier stage, and in BuildKit its arguments and those in front of variables. */
export function inherit(state: StageState, earlier: StageState): void {
  append(state.historyLines, earlier.historyLines);
  append(state.steps, earlier.steps);
  state.argsEscaped = earlier.argsEscaped;
  if (state.isClassic) return;
  state.args.inherit(earlier.args);
  for (const [name, value] of earlier.overrides) state.overrides.set(name, value);
}

/** ARG, which in BuildKit goes before an earlier ENV. */
export function takeArg(state: StageState, name: string, value: string | undefined): void {
  state.args.add(name, value);
  if (state.isClassic) return;
  const taken = state.args.valueOf(name);
  const isVariable = (state.config.Env ?? []).some((entry) => entry.startsWith(`${name}=`));
  if (isVariable && taken !== undefined) state.overrides.set(name, taken);
}

/** Variables with secrets, which are not shown. */
export function maskedSecrets(instruction: Instruction): string[] {
  if (instruction.kind !== 'run') return [];
  return instruction.mountTexts.flatMap((text) => {
    const [, name] = /(?:^|,)env=([^,]+)/.exec(text) ?? [];
    return name === undefined ? [] : [`${name}=****`];
  });
}

/** BuildKit leaves out the client's labels and the triggers, and writes some lines in another way. */
export function settingLine(step: Setting, comment: string): string | undefined {
  if (step.kind === 'onbuild' || (step.kind === 'label' && step.isLiteral)) return undefined;
  if (step.kind === 'expose') {
    const ports = exposedPorts(comment.replace(/^EXPOSE /, '').split(' '));
    return `EXPOSE [${ports.join(' ')}]`;
  }
  if (step.kind !== 'healthcheck') return comment;
  const interval = quote(goDurationText(step.healthcheck.StartInterval ?? 0));
  return comment.replace(/ (\S+)\}$/, ` ${interval} $1}`);
}
