#define _GNU_SOURCE
#include "shim.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct generation *current_log;

static unsigned char out[256 * 1024];
static size_t out_length;
static unsigned char partial[3][LINE_LIMIT];
static size_t partial_length[3];
static char stamp[40];

struct generation *hold(struct generation *generation)
{
    if (generation != NULL) generation->references++;
    return generation;
}

void let_go(struct generation *generation)
{
    while (generation != NULL && --generation->references == 0) {
        struct generation *next = generation->next;
        close(generation->fd);
        free(generation);
        generation = next;
    }
}

static struct generation *new_generation(int fd)
{
    struct generation *made = calloc(1, sizeof *made);
    struct stat information;
    if (made == NULL || fd < 0 || fstat(fd, &information) < 0) fail("open the log");
    *made = (struct generation){.fd = fd, .end = information.st_size, .references = 1};
    return made;
}

static void rotated_name(char *name, int number)
{
    if (number == 0) snprintf(name, PATH_MAX, "%s", options.log_path);
    else snprintf(name, PATH_MAX, "%s.%d", options.log_path, number);
}

static int open_current(void)
{
    return open(options.log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

void open_log(void)
{
    current_log = new_generation(open_current());
    /* A line that a crash cut off must not swallow the next one. */
    char last = '\n';
    if (current_log->end > 0 && pread(current_log->fd, &last, 1, current_log->end - 1) == 1 && last != '\n')
        if (write(current_log->fd, "\n", 1) == 1) current_log->end++;
}

/* The files of the log from the oldest on, chained up to the present one. The caller lets the first one go. */
struct generation *oldest_log(void)
{
    struct generation *first = hold(current_log);
    for (int number = 1; number < options.log_max_files; number++) {
        char name[PATH_MAX];
        rotated_name(name, number);
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0) break;
        struct generation *older = new_generation(fd);
        older->next = first;
        first = older;
    }
    return first;
}

static void flush(void)
{
    size_t done = 0;
    while (done < out_length) {
        ssize_t written = write(current_log->fd, out + done, out_length - done);
        if (written <= 0) break;
        done += (size_t)written;
    }
    /* On a full disk the rest is lost, but no half line stays. */
    if (done < out_length && ftruncate(current_log->fd, current_log->end) == 0) done = 0;
    current_log->end += (off_t)done;
    out_length = 0;
}

/* Clients that still read the old file keep it open, whatever becomes of its name. */
static void rotate(void)
{
    flush();
    char from[PATH_MAX], to[PATH_MAX];
    for (int number = options.log_max_files - 1; number > 0; number--) {
        rotated_name(from, number - 1);
        rotated_name(to, number);
        rename(from, to);
    }
    if (options.log_max_files <= 1) unlink(options.log_path);
    int fd = open_current();
    if (fd < 0) return; /* no room for a new file: go on in the old one */
    struct generation *next = new_generation(fd);
    current_log->next = hold(next);
    let_go(current_log);
    current_log = next;
}

static void put(const void *bytes, size_t length)
{
    memcpy(out + out_length, bytes, length);
    out_length += length;
}

#define PUT(text) put(text, sizeof(text) - 1)

/* Length of the valid UTF-8 sequence at `s`, 0 if it is none. */
static size_t sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80) return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
    if (s[0] == 0xed && s[1] > 0x9f) return 0;
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
    return length;
}

static bool plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\' && byte != '<' && byte != '>' && byte != '&';
}

/* Escapes as docker's json-file does; returns whether all of it was valid UTF-8. */
static bool put_escaped(const unsigned char *s, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    bool valid = true;
    for (size_t i = 0; i < length;) {
        size_t run = i;
        while (run < length && plain(s[run])) run++;
        put(s + i, run - i);
        if ((i = run) == length) break;
        size_t wide = sequence(s + i, length - i);
        if (wide == 0) {
            PUT("\\ufffd");
            valid = false;
            i++;
        } else if (wide == 3 && s[i] == 0xe2 && s[i + 1] == 0x80 && (s[i + 2] & 0xfe) == 0xa8) {
            put(s[i + 2] == 0xa8 ? "\\u2028" : "\\u2029", 6);
            i += 3;
        } else if (wide > 1) {
            put(s + i, wide);
            i += wide;
        } else {
            unsigned char byte = s[i++];
            if (byte == '"' || byte == '\\') put((char[]){'\\', (char)byte}, 2);
            else if (byte == '\n') PUT("\\n");
            else if (byte == '\r') PUT("\\r");
            else {
                put("\\u00", 4);
                put((char[]){digits[byte >> 4], digits[byte & 15]}, 2);
            }
        }
    }
    return valid;
}

static void put_base64(const unsigned char *s, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = (uint32_t)s[i] << 16;
        if (i + 1 < length) bits |= (uint32_t)s[i + 1] << 8;
        if (i + 2 < length) bits |= s[i + 2];
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], i + 1 < length ? digits[bits >> 6 & 63] : '=',
                        i + 2 < length ? digits[bits & 63] : '='};
        put(four, 4);
    }
}

/* RFC 3339 with nanoseconds, without trailing zeros, as Go prints it. */
static void take_time(void)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    length += (size_t)snprintf(stamp + length, sizeof stamp - length, ".%09ld", now.tv_nsec);
    while (stamp[length - 1] == '0') length--;
    if (stamp[length - 1] == '.') length--;
    stamp[length] = 'Z';
    stamp[length + 1] = 0;
}

static void entry(enum stream stream, const unsigned char *bytes, size_t length)
{
    if (options.log_max_bytes > 0 && current_log->end + (off_t)out_length >= options.log_max_bytes) rotate();
    if (sizeof out - out_length < length * 8 + 256) flush();
    PUT("{\"log\":\"");
    bool valid = put_escaped(bytes, length);
    if (stream == STDOUT) PUT("\",\"stream\":\"stdout\",\"time\":\"");
    else PUT("\",\"stream\":\"stderr\",\"time\":\"");
    put(stamp, strlen(stamp));
    if (!valid) { /* docker's readers pass over this field; with it no byte is lost */
        PUT("\",\"raw\":\"");
        put_base64(bytes, length);
    }
    PUT("\"}\n");
}

static void entry_of_partial(enum stream stream)
{
    if (partial_length[stream] > 0) entry(stream, partial[stream], partial_length[stream]);
    partial_length[stream] = 0;
}

void log_output(enum stream stream, const unsigned char *bytes, size_t length)
{
    take_time();
    while (length > 0) {
        size_t held = partial_length[stream];
        size_t limit = LINE_LIMIT - held < length ? LINE_LIMIT - held : length;
        const unsigned char *end = memchr(bytes, '\n', limit);
        size_t taken = end != NULL ? (size_t)(end - bytes) + 1 : limit;
        if (held == 0 && (end != NULL || taken == LINE_LIMIT)) {
            entry(stream, bytes, taken);
        } else {
            memcpy(partial[stream] + held, bytes, taken);
            partial_length[stream] += taken;
            if (end != NULL || partial_length[stream] == LINE_LIMIT) entry_of_partial(stream);
        }
        bytes += taken;
        length -= taken;
    }
    flush();
}

void log_finish(void)
{
    if (current_log == NULL) return;
    take_time();
    entry_of_partial(STDOUT);
    entry_of_partial(STDERR);
    flush();
}

size_t log_pending(enum stream stream, const unsigned char **bytes)
{
    if (bytes != NULL) *bytes = partial[stream];
    return partial_length[stream];
}
