"""PyGithub, driven line by line: a command comes on stdin, its outcome goes to stdout as JSON.

Usage: pygithub.py URL TOKEN [retry]    retry: with urllib3's Retry, as PyGithub's users configure it
"""

import json
import sys

from github import Github, GithubException
from urllib3.util import Retry

url, token = sys.argv[1:3]
retry = Retry(total=2, status_forcelist=[403, 429]) if sys.argv[3:] == ["retry"] else None
host = Github(token, base_url=url, retry=retry)


def run(command):
    if command == "user":
        return host.get_user().login
    if command == "search":
        return host.search_repositories("engine").totalCount
    if command == "issue":
        return host.get_repo("ada/engine", lazy=True).create_issue("found by PyGithub").number
    if command == "status":
        return host.get_rate_limit().core.remaining
    raise ValueError(command)


def outcome(command):
    try:
        return {"result": run(command)}
    except GithubException as error:
        return {
            "error": type(error).__name__,
            "status": error.status,
            "message": error.data["message"],
            "retryAfterSeconds": int(error.headers.get("retry-after", 0)),
        }


for line in sys.stdin:
    answer = outcome(line.strip())
    remaining, limit = host.rate_limiting
    print(json.dumps({**answer, "remaining": remaining, "limit": limit, "reset": host.rate_limiting_resettime}), flush=True)
