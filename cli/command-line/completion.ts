import { listNodes, listServices } from '@gantry/client/cluster.ts';
import { list as listContainers } from '@gantry/client/containers.ts';
import { listImages } from '@gantry/client/images.ts';
import { listNetworks } from '@gantry/client/networks.ts';
import { listPlugins } from '@gantry/client/plugins.ts';
import { listSecrets } from '@gantry/client/secrets.ts';
import { listVolumes } from '@gantry/client/volumes.ts';

import { COMMANDS } from '../commands.ts';
import { UsageError } from '../exit-codes.ts';
import { findCommand, GROUPS } from '../groups.ts';
import { command, type Command, type Context, type Flag, type Offers } from './command.ts';

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_gantry() {
  local word rest="\${COMP_LINE:0:COMP_POINT}" line=()
  # Bash makes three words of --flag=value, and of image:tag.
  for word in "\${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    if [ \${#line[@]} = 0 ] || [[ $rest == [[:space:]]* ]]; then line+=("$word"); else line[-1]+=$word; fi
    rest="\${rest#"\${rest%%[![:space:]]*}"}"
    rest="\${rest#"$word"}"
  done
  mapfile -t COMPREPLY < <("\${line[@]:0:1}" __complete "\${line[@]:1}" 2>/dev/null)
  COMPREPLY=("\${COMPREPLY[@]%%$'\\t'*}")
  case "\${COMPREPLY[*]}" in
    :file)
      COMPREPLY=()
      compopt -o default 2>/dev/null
      ;;
    *:) compopt -o nospace 2>/dev/null ;;
  esac
  # It replaces only the last of them.
  [[ $word == [:=]* ]] && word=
  COMPREPLY=("\${COMPREPLY[@]#"\${line[-1]%"$word"}"}")
}
complete -F _gantry gantry ./gantry`,
  zsh: `#compdef gantry
_gantry() {
  local -a words_ lines
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT-1]}" "\${words[CURRENT]}" 2>/dev/null)}")
  if [[ "\${lines[1]}" == :file ]]; then
    _files
    return
  fi
  local line
  for line in "\${lines[@]}"; do words_+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}"); done
  _describe gantry words_
}
compdef _gantry gantry ./gantry`,
  fish: `function __gantry_complete
  set -l words (commandline -opc)
  set -l found ($words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null)
  if test "$found[1]" = :file
    __fish_complete_path (commandline -ct)
    return
  end
  printf '%s\\n' $found
end
complete -c gantry -f -a '(__gantry_complete)'`,
};

/** `gantry completion`: a script that asks \`gantry __complete\` for what may follow. */
export const completion = command({
  words: 'bash|zsh|fish',
  count: [1, 1],
  flags: {},
  offers: Object.keys(SCRIPTS),
  examples: ['source <(gantry completion bash)', 'gantry completion fish > ~/.config/fish/completions/gantry.fish'],
  run: async (_context, [shell = '']) => {
    const script = SCRIPTS[shell];
    if (script === undefined)
      throw new UsageError(`unsupported shell '${shell}': completion is for bash, zsh and fish`);
    console.log(script);
    return await Promise.resolve(0);
  },
});

/** Candidates for the last word, each with its description behind a tab; only `:file` for names of files. */
export async function completionsOf(words: readonly string[], context: Context): Promise<string[]> {
  const before = words.slice(0, -1);
  const start = words.at(-1) ?? '';
  const found = before.length === 0 ? undefined : findCommand(before);
  if (found === undefined) return before.length === 0 ? matching(topWords(), start) : [];
  if (found.kind === 'group') return found.rest.length === 0 ? matching(groupWords(found.name), start) : [];
  return await completionsOfCommand(await found.entry.load(), found.rest, start, context);
}

async function completionsOfCommand(
  definition: Command,
  before: readonly string[],
  start: string,
  context: Context,
): Promise<string[]> {
  const { awaits, words } = placeIn(definition, before);
  if (awaits !== undefined) return await offered(awaits.offers, start, context);
  if (start.startsWith('--') && start.includes('=')) {
    const [name, value] = [start.slice(2, start.indexOf('=')), start.slice(start.indexOf('=') + 1)];
    const values = await offered(definition.flags[name]?.offers, value, context);
    return values.map((each) => (each === ':file' ? each : `--${name}=${each}`));
  }
  if (start.startsWith('-') && !(definition.passesOn === true && words > 0)) {
    const usable = Object.entries(definition.flags).filter(([, { refused }]) => refused === undefined);
    return matching(
      usable.map(([name, { help }]) => `--${name}\t${help}`),
      start,
    );
  }
  if (words >= definition.count[1] || (definition.passesOn === true && words > 0)) return [];
  return await offered(definition.offers, start, context);
}

/** Whether a flag needs its value next, and the number of words so far. */
function placeIn({ flags, passesOn }: Command, before: readonly string[]): { awaits?: Flag; words: number } {
  let words = 0;
  for (let at = 0; at < before.length; at += 1) {
    const word = before[at]!;
    if (passesOn === true && words > 0) return { words };
    if (!word.startsWith('-') || word === '-') {
      words += 1;
      continue;
    }
    const flag = word.startsWith('--')
      ? flags[word.slice(2)]
      : Object.values(flags).find(({ short }) => word.endsWith(short ?? '\0'));
    if (flag === undefined || flag.kind === 'boolean') continue;
    if (at === before.length - 1) return { awaits: flag, words };
    at += 1;
  }
  return { words };
}

async function offered(offers: Offers | undefined, start: string, { connection }: Context): Promise<string[]> {
  switch (offers) {
    case undefined:
      return [];
    case 'file':
      return [':file'];
    case 'container': {
      const listed = await listContainers(connection, { all: true });
      return matching(
        listed.map(({ Names, Image }) => `${(Names[0] ?? '').slice(1)}\t${Image}`),
        start,
      );
    }
    case 'image': {
      const listed = await listImages(connection);
      return matching(
        listed.flatMap(({ RepoTags }) => RepoTags ?? []),
        start,
      );
    }
    case 'volume':
      return matching(
        (await listVolumes(connection)).map(({ Name }) => Name),
        start,
      );
    case 'plugin':
      return matching(
        (await listPlugins(connection)).map(({ PluginReference }) => PluginReference),
        start,
      );
    case 'node':
      return matching(
        (await listNodes(connection)).map(({ Description }) => Description.Hostname ?? ''),
        start,
      );
    case 'service':
      return matching(
        (await listServices(connection)).map(({ Spec }) => Spec.Name),
        start,
      );
    case 'secret':
    case 'config':
      return matching(
        (await listSecrets(connection, offers)).map(({ Spec }) => Spec.Name),
        start,
      );
    case 'network':
      return matching(
        (await listNetworks(connection)).map(({ Name }) => Name),
        start,
      );
    default:
      return matching(offers, start);
  }
}

function topWords(): string[] {
  const commands = Object.entries(COMMANDS).filter(([name]) => !name.includes(' '));
  return [...commands, ...Object.entries(GROUPS)].map(([name, { summary }]) => `${name}\t${summary}`);
}

function groupWords(group: string): string[] {
  return Object.entries(GROUPS[group]!.commands).map(([word, name]) => `${word}\t${COMMANDS[name]!.summary}`);
}

function matching(words: readonly string[], start: string): string[] {
  return words.filter((word) => word.startsWith(start));
}
