import type { Category } from '@gantry/limiter/types.ts';

/**
 * Which requests belong to which category; all others are core. `source_import` has no endpoint any more, and
 * `graphql` is found by `GRAPHQL_PATHS`.
 */
export const CATEGORY_ROUTES: Readonly<Partial<Record<Category, readonly string[]>>> = {
  search: ['GET /search/**'],
  code_search: ['GET /search/code'],
  integration_manifest: ['POST /app-manifests/{code}/conversions'],
  dependency_snapshots: ['POST /repos/{owner}/{repo}/dependency-graph/snapshots'],
  code_scanning_upload: ['POST /repos/{owner}/{repo}/code-scanning/sarifs'],
  actions_runner_registration: [
    'POST /repos/{owner}/{repo}/actions/runners/registration-token',
    'POST /repos/{owner}/{repo}/actions/runners/generate-jitconfig',
    'POST /orgs/{org}/actions/runners/registration-token',
    'POST /orgs/{org}/actions/runners/generate-jitconfig',
    'POST /enterprises/{enterprise}/actions/runners/registration-token',
  ],
  scim: ['* /scim/**'],
};

/** Paths of GraphQL as code hosts have them, at the root of the server whatever `basePath` is. */
export const GRAPHQL_PATHS: readonly string[] = ['graphql', 'api/graphql'];

/** Requests that create something that other people are notified of. */
export const CONTENT_ROUTES: readonly string[] = [
  'POST /repos/{owner}/{repo}/issues',
  'POST /repos/{owner}/{repo}/issues/{number}/comments',
  'POST /repos/{owner}/{repo}/issues/{number}/assignees',
  'POST /repos/{owner}/{repo}/issues/{number}/labels',
  'POST /repos/{owner}/{repo}/pulls',
  'POST /repos/{owner}/{repo}/pulls/{number}/comments',
  'POST /repos/{owner}/{repo}/pulls/{number}/comments/{id}/replies',
  'POST /repos/{owner}/{repo}/pulls/{number}/reviews',
  'POST /repos/{owner}/{repo}/pulls/{number}/reviews/{id}/events',
  'POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers',
  'POST /repos/{owner}/{repo}/commits/{sha}/comments',
  'POST /repos/{owner}/{repo}/discussions',
  'POST /repos/{owner}/{repo}/discussions/{number}/comments',
  'POST /repos/{owner}/{repo}/releases',
  'POST /repos/{owner}/{repo}/milestones',
  'POST /repos/{owner}/{repo}/forks',
  'POST /repos/{owner}/{repo}/generate',
  'POST /gists',
  'POST /gists/{id}/comments',
  'POST /gists/{id}/forks',
  'POST /user/repos',
  'POST /orgs/{org}/repos',
  'PUT /repos/{owner}/{repo}/contents/**',
  'POST /repos/{owner}/{repo}/contents/**',
];

/**
 * Path templates of code-hosting APIs. An endpoint is a method and one of these; a path that fits no template is
 * counted together with its neighbours, under the longest beginning of a template that fits.
 */
export const PATH_TEMPLATES: readonly string[] = [
  ...['/', '/meta', '/emojis', '/events', '/feeds', '/versions', '/zen', '/octocat', '/version', '/nodeinfo'],
  ...['/app', '/app/installations', '/app/installations/{id}', '/app/installations/{id}/access_tokens'],
  ...[
    '/installation/repositories',
    '/installation/token',
    '/applications/{client}/token',
    '/markdown',
    '/markdown/raw',
  ],
  ...['/user', '/user/repos', '/user/orgs', '/user/issues', '/user/keys', '/user/keys/{id}', '/user/emails'],
  ...['/user/teams', '/user/followers', '/user/following', '/user/following/{user}', '/user/starred'],
  ...['/user/starred/{owner}/{repo}', '/user/subscriptions', '/user/installations', '/user/gpg_keys'],
  ...[
    '/users',
    '/users/{user}',
    '/users/{user}/repos',
    '/users/{user}/orgs',
    '/users/{user}/gists',
    '/users/{user}/keys',
  ],
  ...[
    '/users/{user}/events',
    '/users/{user}/events/public',
    '/users/{user}/received_events',
    '/users/{user}/followers',
  ],
  ...['/users/{user}/following', '/users/{user}/starred', '/users/{user}/tokens', '/users/{user}/tokens/{id}'],
  ...['/organizations', '/orgs/{org}', '/orgs/{org}/repos', '/orgs/{org}/members', '/orgs/{org}/members/{user}'],
  ...['/orgs/{org}/teams', '/orgs/{org}/teams/{team}', '/orgs/{org}/teams/{team}/members', '/orgs/{org}/hooks'],
  ...['/orgs/{org}/teams/{team}/repos', '/orgs/{org}/hooks/{id}', '/orgs/{org}/issues', '/orgs/{org}/events'],
  ...['/orgs/{org}/actions/secrets', '/orgs/{org}/actions/secrets/{name}', '/orgs/{org}/actions/runners'],
  ...['/orgs/{org}/packages', '/orgs/{org}/packages/{type}/{name}', '/orgs/{org}/packages/{type}/{name}/versions'],
  ...['/teams/{id}', '/teams/{id}/members', '/teams/{id}/repos', '/notifications', '/notifications/threads/{id}'],
  ...['/gists', '/gists/{id}', '/gists/{id}/comments', '/gists/{id}/comments/{id}', '/gists/{id}/forks'],
  ...['/gists/{id}/commits', '/gists/{id}/star', '/gists/public', '/gists/starred', '/gists/{id}/{sha}'],
  ...[
    '/issues',
    '/repositories',
    '/repos/search',
    '/search/code',
    '/search/commits',
    '/search/issues',
    '/search/labels',
  ],
  ...[
    '/search/repositories',
    '/search/topics',
    '/search/users',
    '/licenses',
    '/licenses/{name}',
    '/gitignore/templates',
  ],
  ...repository(
    ...['', '/actions/artifacts', '/actions/artifacts/{id}', '/actions/artifacts/{id}/{format}', '/actions/caches'],
    ...[
      '/actions/jobs/{id}',
      '/actions/jobs/{id}/logs',
      '/actions/jobs/{id}/rerun',
      '/actions/runners',
      '/actions/runs',
    ],
    ...['/actions/runs/{id}', '/actions/runs/{id}/jobs', '/actions/runs/{id}/logs', '/actions/runs/{id}/artifacts'],
    ...['/actions/runs/{id}/rerun', '/actions/runs/{id}/cancel', '/actions/secrets', '/actions/secrets/{name}'],
    ...['/actions/variables', '/actions/workflows', '/actions/workflows/{id}', '/actions/workflows/{id}/runs'],
    ...['/actions/workflows/{id}/dispatches', '/activity', '/archive/**', '/tarball/{ref}', '/zipball/{ref}'],
    ...['/assignees', '/assignees/{user}', '/branches', '/branches/{branch}', '/branches/{branch}/protection'],
    ...['/branch_protections', '/check-runs', '/check-runs/{id}', '/check-runs/{id}/annotations', '/check-suites/{id}'],
    ...['/check-suites/{id}/check-runs', '/code-scanning/alerts', '/code-scanning/alerts/{number}'],
    ...['/code-scanning/analyses', '/code-scanning/sarifs/{id}', '/collaborators', '/collaborators/{user}'],
    ...['/collaborators/{user}/permission', '/comments', '/comments/{id}', '/commits', '/commits/{sha}'],
    ...['/commits/{sha}/check-runs', '/commits/{sha}/check-suites', '/commits/{sha}/pulls', '/commits/{sha}/status'],
    ...['/commits/{sha}/statuses', '/compare/**', '/contents', '/contents/**', '/contributors', '/deployments'],
    ...['/deployments/{id}', '/deployments/{id}/statuses', '/dispatches', '/environments', '/environments/{name}'],
    ...['/events', '/forks', '/git/blobs', '/git/blobs/{sha}', '/git/commits', '/git/commits/{sha}', '/git/refs'],
    ...['/git/refs/**', '/git/ref/**', '/git/matching-refs/**', '/git/tags', '/git/tags/{sha}', '/git/trees'],
    ...[
      '/git/trees/{sha}',
      '/hooks',
      '/hooks/{id}',
      '/hooks/{id}/deliveries',
      '/hooks/{id}/pings',
      '/hooks/{id}/tests',
    ],
    ...['/issues', '/issues/comments', '/issues/comments/{id}', '/issues/comments/{id}/reactions', '/issues/events'],
    ...['/issues/{number}', '/issues/{number}/comments', '/issues/{number}/events', '/issues/{number}/labels'],
    ...['/issues/{number}/labels/{name}', '/issues/{number}/lock', '/issues/{number}/reactions'],
    ...['/issues/{number}/timeline', '/keys', '/keys/{id}', '/labels', '/labels/{name}', '/languages', '/license'],
    ...['/media/**', '/merges', '/merge-upstream', '/milestones', '/milestones/{number}', '/notifications', '/pages'],
    ...['/pulls', '/pulls/comments', '/pulls/comments/{id}', '/pulls/{number}', '/pulls/{number}/comments'],
    ...['/pulls/{number}/commits', '/pulls/{number}/files', '/pulls/{number}/merge', '/pulls/{number}/reviews'],
    ...['/pulls/{number}/reviews/{id}', '/pulls/{number}/requested_reviewers', '/pulls/{number}/update-branch'],
    ...['/raw/**', '/readme', '/readme/**', '/releases', '/releases/assets/{id}', '/releases/latest', '/releases/{id}'],
    ...['/releases/generate-notes', '/releases/tags/{tag}', '/releases/{id}/assets', '/stargazers', '/stats/{kind}'],
    ...[
      '/statuses/{sha}',
      '/subscribers',
      '/subscription',
      '/tags',
      '/tags/{tag}',
      '/teams',
      '/topics',
      '/traffic/{kind}',
    ],
    ...['/transfer', '/vulnerability-alerts', '/wiki/{page}', '/wiki/pages'],
  ),
];

function repository(...paths: string[]): string[] {
  return paths.map((path) => `/repos/{owner}/{repo}${path}`);
}
