import assert from 'node:assert/strict';
import { test } from 'node:test';

import { compileTemplate } from './run.ts';

const VALUE = {
  Name: '/web',
  Id: 'abc',
  Count: 3,
  Running: true,
  Nothing: null,
  Empty: '',
  List: ['a', 'b'],
  Ports: { '80/tcp': [{ HostIp: '0.0.0.0', HostPort: '8080' }], '90/udp': null },
  Config: { Labels: { 'com.x': 'y', z: '1' } },
  Label: (name: string) => `label ${name}`,
};

/** The expected texts are what docker's command line prints. */
for (const [template, text] of [
  ['{{.Name}}', '/web'],
  ['{{ .Name }} {{.Count}}', '/web 3'],
  ['no action', 'no action'],
  ['{{json .List}}', '["a","b"]'],
  ['{{.List | json}}', '["a","b"]'],
  ['{{json .Nothing}}', 'null'],
  ['{{.List}} {{.Config.Labels}}', '[a b] map[com.x:y z:1]'],
  ['{{.Nothing}}', '<nil>'],
  ['{{index .Config.Labels "com.x"}}', 'y'],
  ['{{index .Config.Labels "none"}}.', '.'],
  ['{{.Config.Labels.none}}', '<no value>'],
  ['{{(index (index .Ports "80/tcp") 0).HostPort}}', '8080'],
  ['{{range .List}}<{{.}}>{{end}}', '<a><b>'],
  ['{{range $i, $e := .List}}{{$i}}={{$e}} {{end}}', '0=a 1=b '],
  [
    '{{range $port, $on := .Ports}}{{$port}}:{{if $on}}{{(index $on 0).HostPort}}{{else}}-{{end}};{{end}}',
    '80/tcp:8080;90/udp:-;',
  ],
  ['{{range .Nothing}}x{{else}}none{{end}}', 'none'],
  ['{{range .List}}{{$.Name}}{{end}}', '/web/web'],
  ['{{if .Running}}up{{else}}down{{end}}', 'up'],
  ['{{if .Missing}}there{{else}}not there{{end}}', 'not there'],
  ['{{if .Missing.Deep}}x{{else if .Running}}y{{else}}z{{end}}', 'y'],
  ['{{with .Config}}{{.Labels.z}}{{end}}', '1'],
  ['{{with $x := .Count}}{{$x}}{{end}}', '3'],
  ['{{$n := .Count}}{{$n}}', '3'],
  ['{{if and .Running (eq .Count 3)}}yes{{end}}', 'yes'],
  ['{{if or .Empty .Nothing}}x{{else}}neither{{end}}', 'neither'],
  ['{{not .Running}} {{eq .Name "/web" }} {{ne 1 2}} {{gt .Count 2}} {{le .Count 2}}', 'false true true true false'],
  ['{{eq .Count 1 2 3}}', 'true'],
  ['{{len .List}} {{len .Name}}', '2 4'],
  ['{{join .List ", "}} {{index (split .Name "/") 1}}', 'a, b web'],
  ['{{upper .Id}} {{lower "ABC"}} {{title "some words"}}', 'ABC abc Some Words'],
  ['{{pad .Id 1 2}}| {{truncate .Name 2}}', ' abc  | /w'],
  ['{{printf "%-5s|%03d|%q|%.2s" .Id .Count .Name "long"}}', 'abc  |003|"/web"|lo'],
  ['{{println .Id}}', 'abc\n'],
  ['a {{- .Id -}} b', 'aabcb'],
  ['{{/* nothing */}}x', 'x'],
  ['{{"}}"}} {{`raw "`}}', '}} raw "'],
  ['{{.Label "x"}}', 'label x'],
  ['{{slice .Id 0 2}}', 'ab'],
  ['{{print 1 2 "x" 3}}', '1 2x3'],
  [`{{html "<a href='x'>"}}`, '&lt;a href=&#39;x&#39;&gt;'],
  [`{{js "it's <b>=1"}}`, `it\\'s \\u003Cb\\u003E\\u003D1`],
  ['{{urlquery "a b&c!"}}', 'a+b%26c%21'],
] as const) {
  test(`${template} gives ${text.trim()}`, () => assert.equal(compileTemplate(template)(VALUE), text));
}

for (const [template, message] of [
  ['{{.Name', /unclosed action/],
  ['{{if .Name}}x', /without {{end}}/],
  ['{{end}}', /unexpected {{end}}/],
  ['{{nosuch .Name}}', /function "nosuch" not defined/],
  ['{{$x}}', /undefined variable "\$x"/],
  ['{{.Nope}}', /unknown field \.Nope/],
  ['{{.Config.Nope.Deeper}}', /unknown field \.Config\.Nope\.Deeper/],
  ['{{index .List 5}}', /out of range/],
  ['{{.Name ! }}', /unexpected "!/],
  ['{{(.Name}}', /unclosed \(/],
  ['{{.Name "x"}}', /used as a function/],
  ['{{}}', /missing value/],
] as const) {
  test(`${template} is refused`, () =>
    assert.throws(() => compileTemplate(template)(VALUE), { name: 'TemplateError', message }));
}

test('values are shown as the caller wants, the template’s own text as it is', () => {
  assert.equal(
    compileTemplate('\u001b[1m{{.}}', (text) => text.replaceAll('\u001b', '?'))('\u001b[2J'),
    '\u001b[1m?[2J',
  );
});
