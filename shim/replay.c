#define _GNU_SOURCE
#include "shim.h"

#include <string.h>
#include <unistd.h>

/* The longest entry: 16 KB that are all escaped, and once more as base64. */
#define ENTRY_LIMIT (LINE_LIMIT * 8 + 512)

static unsigned char block[2 * ENTRY_LIMIT];
static unsigned char payload[LINE_LIMIT + 8];

static int digit(unsigned char byte)
{
    if (byte >= 'A' && byte <= 'Z') return byte - 'A';
    if (byte >= 'a' && byte <= 'z') return byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return byte - '0' + 52;
    return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

static size_t decode_base64(const unsigned char *text, const unsigned char *end)
{
    size_t length = 0;
    uint32_t bits = 0;
    int have = 0;
    for (; text < end && *text != '"' && *text != '='; text++) {
        int value = digit(*text);
        if (value < 0) return 0;
        bits = bits << 6 | (uint32_t)value;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        if (length < LINE_LIMIT) payload[length++] = (unsigned char)(bits >> have);
    }
    return length;
}

static unsigned hexadecimal(const unsigned char *text)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char byte = text[i];
        value = value << 4 | (unsigned)(byte <= '9' ? byte - '0' : (byte | 32) - 'a' + 10);
    }
    return value;
}

static size_t put_rune(size_t at, unsigned rune)
{
    unsigned char wide[3];
    size_t length = rune < 0x80 ? 1 : rune < 0x800 ? 2 : 3;
    if (length == 1) wide[0] = (unsigned char)rune;
    if (length == 2) wide[0] = (unsigned char)(0xc0 | rune >> 6);
    if (length == 3) {
        wide[0] = (unsigned char)(0xe0 | rune >> 12);
        wide[1] = (unsigned char)(0x80 | (rune >> 6 & 63));
    }
    if (length > 1) wide[length - 1] = (unsigned char)(0x80 | (rune & 63));
    if (at + length <= LINE_LIMIT) memcpy(payload + at, wide, length);
    return length;
}

/* Puts the text of an entry into `payload`. Returns its length, or -1 for a line that is none of ours. */
static ssize_t decode(const unsigned char *line, const unsigned char *end, enum stream *stream)
{
    static const char head[] = "{\"log\":\"", tail[] = "\",\"stream\":\"std", raw[] = "\",\"raw\":\"";
    if ((size_t)(end - line) < sizeof head || memcmp(line, head, sizeof head - 1) != 0) return -1;
    const unsigned char *at = line + sizeof head - 1;
    size_t length = 0;
    while (at < end && *at != '"' && length < LINE_LIMIT) {
        if (*at != '\\') {
            payload[length++] = *at++;
            continue;
        }
        unsigned char kind = at + 1 < end ? at[1] : 0;
        if (kind == 'u' && at + 6 <= end) {
            length += put_rune(length, hexadecimal(at + 2));
            at += 6;
            continue;
        }
        static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
        const char *found = kind ? strchr(from, kind) : NULL;
        payload[length++] = found != NULL ? (unsigned char)to[found - from] : kind;
        at += 2;
    }
    if (end - at < (ssize_t)sizeof tail || memcmp(at, tail, sizeof tail - 1) != 0) return -1;
    *stream = at[sizeof tail - 1] == 'e' ? STDERR : STDOUT;
    const unsigned char *bytes = memmem(at, (size_t)(end - at), raw, sizeof raw - 1);
    if (bytes != NULL) length = decode_base64(bytes + sizeof raw - 1, end);
    return length < LINE_LIMIT ? (ssize_t)length : LINE_LIMIT;
}

static void hand_over(struct client *client, enum stream stream, const unsigned char *bytes, size_t length)
{
    size_t skipped = client->skip[stream] < length ? client->skip[stream] : length;
    client->skip[stream] -= skipped;
    if (length > skipped && client_takes(client, stream)) queue_frame(client, stream, bytes + skipped, length - skipped);
}

/* The log has no unfinished line; the present has. */
static void become_live(struct client *client)
{
    for (enum stream stream = STDOUT; stream <= STDERR; stream++) {
        const unsigned char *bytes;
        size_t length = log_pending(stream, &bytes);
        hand_over(client, stream, bytes, length);
        client->skip[stream] = 0;
    }
    let_go(client->replay);
    client->replay = NULL;
}

static bool next_file(struct client *client)
{
    struct generation *next = client->replay->next;
    if (next == NULL) return false;
    hold(next);
    let_go(client->replay);
    client->replay = next;
    client->replay_offset = 0;
    return true;
}

/*
 * Hands a client what the log has from its cursor on, as much as its buffer takes. Returns whether it got further.
 */
bool replay(struct client *client)
{
    bool moved = false;
    while (client->replay != NULL && client_room(client) >= CLIENT_BUFFER / 2) {
        struct generation *file = client->replay;
        ssize_t length = pread(file->fd, block, sizeof block, client->replay_offset);
        const unsigned char *end = block + (length > 0 ? length : 0), *line = block;
        for (const unsigned char *stop; (stop = memchr(line, '\n', (size_t)(end - line))) != NULL; line = stop + 1) {
            if (client_room(client) < LINE_LIMIT + 8) break;
            enum stream stream;
            ssize_t size = decode(line, stop, &stream);
            if (size > 0) hand_over(client, stream, payload, (size_t)size);
        }
        client->replay_offset += line - block;
        moved = moved || line > block;
        if (line > block) continue;
        if (client_room(client) < LINE_LIMIT + 8) break;
        /* Nothing whole is left in this file. */
        if (file != current_log) {
            if (!next_file(client)) break;
        } else {
            if (client_room(client) < 2 * (LINE_LIMIT + 8)) break;
            become_live(client);
        }
        moved = true;
    }
    return moved;
}
