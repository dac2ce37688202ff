"""A program that uses docker-py at the version of its argument, on the engine of DOCKER_HOST: prints its results as JSON."""

import io
import json
import re
import sys
import tarfile

import docker


def archive(name, content):
    """A tar of one file."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode='w') as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def run_and_remove(client):
    both = client.containers.run('busybox', ['sh', '-c', 'echo out; echo err >&2'], stderr=True, remove=True)
    return sorted(both.decode().splitlines())


def a_failing_run(client):
    try:
        client.containers.run('busybox', ['sh', '-c', 'echo wrong >&2; exit 3'], remove=True)
    except docker.errors.ContainerError as error:
        return [error.exit_status, error.stderr.decode()]


def life(client):
    container = client.containers.create('busybox', ['sleep', '1000'], name='of-python', labels={'by': 'python'})
    try:
        container.start()
        seen = [container.status]
        for act in (container.pause, container.unpause, lambda: container.restart(timeout=0), lambda: container.rename('renamed')):
            act()
            container.reload()
            seen.append([container.status, container.name])
        container.update(mem_limit='64m', memswap_limit='128m')
        container.reload()
        seen.append(container.attrs['HostConfig']['Memory'])
        seen.append([each.name for each in client.containers.list(all=True, filters={'label': 'by=python'})])
        seen.append(container.top(ps_args='-o pid,args')['Titles'])
        container.kill()
        seen.append(container.wait()['StatusCode'])
        return seen
    finally:
        container.remove(force=True, v=True)


def execs(client):
    container = client.containers.run('busybox', ['sleep', '1000'], detach=True)
    try:
        plain = container.exec_run(['sh', '-c', 'id -un; exit 5'], user='daemon')
        apart = container.exec_run(['sh', '-c', 'echo out; echo err >&2'], demux=True)
        pieces = b''.join(container.exec_run(['seq', '3'], stream=True).output)
        made = client.api.exec_create(container.id, ['cat'], stdin=True)
        socket = client.api.exec_start(made, socket=True)
        socket._sock.sendall(b'typed')
        socket._sock.shutdown(1)
        answer = socket.read()
        socket.close()
        missing = container.exec_run(['nowhere'])
        return [
            plain.exit_code, plain.output.decode(), [part.decode() for part in apart.output], pieces.decode(),
            answer[8:].decode(), client.api.exec_inspect(made)['ExitCode'], missing.exit_code in (126, 127),  # dockerd 20.10 says 126, newer ones 127
        ]
    finally:
        container.remove(force=True, v=True)


def logs(client):
    container = client.containers.run('busybox', ['seq', '5'], detach=True)
    try:
        followed = b''.join(container.logs(stream=True, follow=True))
        container.wait()
        timed = container.logs(timestamps=True, tail=1).decode()
        return [followed.decode(), container.logs(tail=2).decode(), re.sub(r'^\S+Z', '<time>', timed)]
    finally:
        container.remove(force=True, v=True)


def attach(client):
    container = client.containers.create('busybox', ['cat'], stdin_open=True)
    try:
        client.api.start(container.id)
        socket = container.attach_socket(params={'stdin': 1, 'stdout': 1, 'stream': 1})
        socket._sock.sendall(b'through\n')
        said = socket.read(8 + len('through\n'))
        socket.close()
        return said[8:].decode()
    finally:
        container.remove(force=True, v=True)


def archives(client):
    container = client.containers.run('busybox', ['sleep', '1000'], detach=True)
    try:
        taken = container.put_archive('/tmp', archive('file', b'content'))
        pieces, stat = container.get_archive('/tmp/file')
        with tarfile.open(fileobj=io.BytesIO(b''.join(pieces))) as tar:
            content = tar.extractfile('file').read().decode()
        changed = [each['Path'] for each in container.diff() if each['Path'].startswith('/tmp')]
        with tarfile.open(fileobj=io.BytesIO(b''.join(container.export()))) as tar:
            exported = 'tmp/file' in tar.getnames()
        try:
            container.get_archive('/nowhere')
        except docker.errors.NotFound as error:
            refusal = error.status_code
        return [taken, content, stat['name'], stat['size'], sorted(changed), exported, refusal]
    finally:
        container.remove(force=True, v=True)


# dockerd has had os_type since 1.52, and we at every version.
def fields(sample):
    return sorted(name for name in sample if name != 'os_type')


def stats(client):
    container = client.containers.run('busybox', ['sleep', '1000'], detach=True)
    try:
        streamed = next(container.stats(decode=True))
        return [fields(container.stats(stream=False)), fields(streamed)]
    finally:
        container.remove(force=True, v=True)


def refusals(client):
    said = []
    for ask in (
        lambda: client.containers.get('nowhere'),
        lambda: client.containers.create('nowhere-image'),
        lambda: client.containers.create('busybox', mem_limit='1k'),
        lambda: client.volumes.get('nowhere'),
    ):
        try:
            ask()
            said.append('not refused')
        except docker.errors.APIError as error:
            said.append([type(error).__name__, error.explanation])
    return said


def networks_and_volumes(client):
    network = client.networks.create('of-python', driver='bridge')
    volume = client.volumes.create('of-python')
    container = client.containers.create(
        'busybox', ['sh', '-c', 'echo kept >/v/f'], network='of-python', volumes={'of-python': {'bind': '/v', 'mode': 'rw'}}
    )
    try:
        container.start()
        container.wait()
        container.reload()
        joined = list(container.attrs['NetworkSettings']['Networks'])
        read = client.containers.run('busybox', ['cat', '/v/f'], volumes=['of-python:/v:ro'], remove=True)
        return [joined, read.decode()]
    finally:
        container.remove(force=True)
        volume.remove()
        network.remove()


SCENARIOS = (
    run_and_remove, a_failing_run, life, execs, logs, attach, archives, stats, refusals, networks_and_volumes,
)

client = docker.DockerClient.from_env(version=sys.argv[1], timeout=300)
print(json.dumps({scenario.__name__: scenario(client) for scenario in SCENARIOS}))
client.close()
