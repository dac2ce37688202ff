#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

struct client *clients;
char listener_tag;
bool released;

static int listener = -1;

/* Bound by a relative name: a socket's whole path would be limited to 107 bytes. */
void listen_for_clients(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "shim.sock"};
    unlink(address.sun_path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 64) < 0)
        fail("listen");
    watch(listener, EPOLLIN, &listener_tag);
}

void accept_client(void)
{
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
        struct client *client = calloc(1, sizeof *client);
        if (client == NULL) fail("memory");
        client->fd = fd;
        client->interest = EPOLLIN;
        client->next = clients;
        clients = client;
        watch(fd, EPOLLIN, client);
    }
}

int count_clients(int kind)
{
    int count = 0;
    for (struct client *client = clients; client != NULL; client = client->next) count += (int)client->kind == kind;
    return count;
}

static void tell(struct client *client, const char *text)
{
    size_t length = strlen(text);
    if (send(client->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length) client->dead = true;
}

void tell_controls(const char *format, ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (struct client *client = clients; client != NULL; client = client->next)
        if (client->kind == CONTROL) tell(client, text);
}

/* A daemon that comes back learns first what it has missed. */
static void tell_state(struct client *client)
{
    char text[128] = "waiting\n";
    if (phase == STARTING) snprintf(text, sizeof text, "starting\n");
    if (phase == RUNNING || phase == DRAINING) snprintf(text, sizeof text, "started %d %" PRId64 "\n", init_pid, started_ns);
    if (phase == EXITED) describe_exit(text, sizeof text);
    if (phase == FAILED) snprintf(text, sizeof text, "failed 1\n");
    tell(client, text);
    if (deleted) tell(client, "gone\n");
}

static void begin_attached(struct client *client, bool logs)
{
    client->kind = ATTACHED;
    if (!logs || current_log == NULL) return;
    client->replay = oldest_log();
    client->replay_offset = 0;
}

static void handshake(struct client *client)
{
    int version = 0;
    char kind[16] = "";
    if (sscanf(client->line, "GANTRY %d %15s", &version, kind) != 2 || version != PROTOCOL_VERSION) {
        tell(client, "error this shim speaks version 1\n");
        client->dead = true;
        return;
    }
    tell(client, "ok 1\n");
    if (strcmp(kind, "control") == 0) {
        client->kind = CONTROL;
        tell_state(client);
        return;
    }
    client->wants_stdin = strstr(client->line, " stdin=1") != NULL;
    client->wants_stdout = strstr(client->line, " stdout=1") != NULL;
    client->wants_stderr = strstr(client->line, " stderr=1") != NULL;
    client->follows = strstr(client->line, " stream=1") != NULL;
    begin_attached(client, strstr(client->line, " logs=1") != NULL);
}

static void command(struct client *client)
{
    int first, second;
    char answer[64] = "done 0\n";
    if (strcmp(client->line, "start") == 0 && phase == WAITING) start_runtime();
    else if (sscanf(client->line, "signal %d", &first) == 1) snprintf(answer, sizeof answer, "done %d\n", signal_init(first));
    else if (sscanf(client->line, "resize %d %d", &first, &second) == 2) resize_terminal(first, second);
    else if (strcmp(client->line, "release") == 0) released = true;
    else if (strcmp(client->line, "abandon") == 0) cancel_runtime();
    else snprintf(answer, sizeof answer, "done %d\n", EINVAL);
    tell(client, answer);
}

/* Reads no further than the line's end: what follows a handshake is stdin. Returns whether a line is whole. */
static bool read_line(struct client *client)
{
    char *space = client->line + client->line_length;
    ssize_t seen = recv(client->fd, space, sizeof client->line - 1 - client->line_length, MSG_PEEK);
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (seen <= 0) {
        client->dead = true;
        return false;
    }
    char *end = memchr(space, '\n', (size_t)seen);
    ssize_t taken = recv(client->fd, space, end != NULL ? (size_t)(end - space) + 1 : (size_t)seen, 0);
    if (taken > 0) client->line_length += (size_t)taken;
    if (end == NULL) {
        if (client->line_length >= sizeof client->line - 1) client->dead = true;
        return false;
    }
    *end = 0;
    client->line_length = 0;
    return true;
}

static void stdin_client_left(struct client *client)
{
    if (client->wants_stdin && !client->reading_ended && options.stdin_once) end_stdin();
    client->reading_ended = true;
}

static void read_stdin(struct client *client)
{
    static unsigned char bytes[CHUNK];
    while (!client->reading_ended && stdin_has_room()) {
        ssize_t length = recv(client->fd, bytes, sizeof bytes, 0);
        if (length > 0) feed_stdin(bytes, (size_t)length);
        else if (length < 0 && (errno == EAGAIN || errno == EINTR)) return;
        else if (length == 0) stdin_client_left(client);
        else client->dead = true;
        if (client->dead) return;
    }
}

void client_readable(struct client *client, uint32_t events)
{
    if (client->kind == ATTACHED) {
        if (client->wants_stdin) read_stdin(client);
        if (events & (EPOLLHUP | EPOLLERR)) {
            client->hung_up = true;
            if (!client->wants_stdin || client->reading_ended) client->dead = true;
        }
        return;
    }
    while (!client->dead && client->kind != ATTACHED && read_line(client)) {
        if (client->kind == HANDSHAKE) handshake(client);
        else command(client);
    }
}

bool client_takes(const struct client *client, enum stream stream)
{
    return stream == STDOUT ? client->wants_stdout : client->wants_stderr;
}

size_t client_room(const struct client *client)
{
    return CLIENT_BUFFER - client->length;
}

static void store(struct client *client, const unsigned char *bytes, size_t length)
{
    if (client->buffer == NULL && (client->buffer = malloc(CLIENT_BUFFER)) == NULL) {
        client->dead = true;
        return;
    }
    size_t at = (client->start + client->length) % CLIENT_BUFFER;
    size_t first = CLIENT_BUFFER - at < length ? CLIENT_BUFFER - at : length;
    memcpy(client->buffer + at, bytes, first);
    memcpy(client->buffer, bytes + first, length - first);
    client->length += length;
}

/* The caller has seen to it that there is room. Without a terminal each piece gets its 8-byte header. */
void queue_frame(struct client *client, enum stream stream, const unsigned char *bytes, size_t length)
{
    unsigned char header[8] = {stream, 0, 0, 0, (unsigned char)(length >> 24), (unsigned char)(length >> 16),
                               (unsigned char)(length >> 8), (unsigned char)length};
    size_t head = options.tty ? 0 : sizeof header, sent = 0;
    if (client->dead) return;
    if (client->length == 0) { /* nothing waits: past the buffer */
        struct iovec parts[2] = {{header, head}, {(void *)(uintptr_t)bytes, length}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t written = sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && errno != EAGAIN && errno != EINTR) {
            client->dead = true;
            return;
        }
        sent = written > 0 ? (size_t)written : 0;
    }
    if (sent < head) store(client, header + sent, head - sent);
    size_t skipped = sent > head ? sent - head : 0;
    if (skipped < length) store(client, bytes + skipped, length - skipped);
}

void client_writable(struct client *client)
{
    while (client->length > 0 && !client->dead) {
        size_t run = CLIENT_BUFFER - client->start < client->length ? CLIENT_BUFFER - client->start : client->length;
        ssize_t written = send(client->fd, client->buffer + client->start, run, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) break;
        if (written <= 0) {
            client->dead = true;
            return;
        }
        client->start = (client->start + (size_t)written) % CLIENT_BUFFER;
        client->length -= (size_t)written;
    }
    if (client->replay != NULL) replay(client);
}

/* Without a log nobody can be caught up: then the container waits for the slowest client. */
bool clients_have_room(void)
{
    if (current_log != NULL) return true;
    for (struct client *client = clients; client != NULL; client = client->next)
        if (client->kind == ATTACHED && client->follows && !client->dead && client_room(client) < CHUNK + 8) return false;
    return true;
}

static void fall_behind(struct client *client)
{
    client->replay = hold(current_log);
    client->replay_offset = current_log->end;
    for (enum stream stream = STDOUT; stream <= STDERR; stream++) client->skip[stream] = log_pending(stream, NULL);
}

void send_output(enum stream stream, const unsigned char *bytes, size_t length)
{
    for (struct client *client = clients; client != NULL; client = client->next) {
        if (client->kind != ATTACHED || !client->follows || client->dead || client->replay != NULL) continue;
        if (!client_takes(client, stream)) continue;
        if (client_room(client) >= length + 8) queue_frame(client, stream, bytes, length);
        else fall_behind(client);
    }
    if (current_log != NULL) log_output(stream, bytes, length);
}

static bool is_finished(const struct client *client)
{
    bool deaf = !client->wants_stdout && !client->wants_stderr && (!client->wants_stdin || client->reading_ended);
    bool over = phase == EXITED || phase == FAILED || !client->follows || deaf;
    return client->kind == ATTACHED && over && client->replay == NULL && client->length == 0;
}

/* Lets clients that are behind go on, and removes those that are gone or have everything. */
void sweep_clients(void)
{
    for (struct client **link = &clients; *link != NULL;) {
        struct client *client = *link;
        if (client->kind == ATTACHED && !client->dead) {
            if (client->hung_up) client_readable(client, EPOLLHUP);
            while (client->replay != NULL && !client->dead && client->length == 0 && replay(client)) continue;
        }
        if (!client->dead && !is_finished(client)) {
            link = &client->next;
            continue;
        }
        if (client->kind == ATTACHED) stdin_client_left(client);
        *link = client->next;
        close(client->fd);
        let_go(client->replay);
        free(client->buffer);
        free(client);
    }
}

static uint32_t wanted(const struct client *client)
{
    uint32_t events = 0;
    if (client->kind != ATTACHED) events |= EPOLLIN;
    else if (client->wants_stdin && !client->reading_ended && stdin_has_room()) events |= EPOLLIN;
    if (client->length > 0 || client->replay != NULL) events |= EPOLLOUT;
    return events;
}

void update_interests(void)
{
    static bool reading = true;
    bool room = clients_have_room();
    for (enum stream stream = STDOUT; stream <= STDERR && phase == RUNNING && room != reading; stream++)
        if (output_fds[stream] >= 0) rewatch(output_fds[stream], room ? EPOLLIN : 0, output_tag(stream));
    reading = phase == RUNNING ? room : reading;
    for (struct client *client = clients; client != NULL; client = client->next) {
        uint32_t events = wanted(client);
        if (client->hung_up) {
            unwatch(client->fd); /* its end would be told over and over */
        } else if (events != client->interest) {
            rewatch(client->fd, events, client);
            client->interest = events;
        }
    }
}
