#define _GNU_SOURCE
#include "shim.h"

#include <string.h>

unsigned char json[JSON_BATCH + ENTRY_LIMIT];
size_t json_length;

void put(const void *bytes, size_t length)
{
    memcpy(json + json_length, bytes, length);
    json_length += length;
}

static size_t announced_length(unsigned char first)
{
    return first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* Length of the valid UTF-8 sequence at `s`, 0 when there is none. */
static size_t sequence(const unsigned char *s, size_t left)
{
    size_t length = announced_length(s[0]);
    if (length == 1) return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* longer than needed */
    if (s[0] == 0xed && s[1] > 0x9f) return 0; /* half of a surrogate pair */
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
    return length;
}

/* Where text of this length can be cut without cutting the last character in two. */
size_t whole_sequences(const unsigned char *s, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = s[length - back];
        if ((byte & 0xc0) == 0x80) continue;
        return byte >= 0xc2 && byte <= 0xf4 && announced_length(byte) > back ? length - back : length;
    }
    return length;
}

/* Bytes that stand for themselves, by the table: this loop sees every byte of the output. */
static bool plain[256];

static void fill_plain(void)
{
    for (int byte = 0x20; byte < 0x80; byte++) plain[byte] = strchr("\"\\<>&", byte) == NULL;
}

static void put_control(unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    if (byte == '"' || byte == '\\') put((char[]){'\\', (char)byte}, 2);
    else if (byte == '\n') PUT("\\n");
    else if (byte == '\r') PUT("\\r");
    else put((char[]){'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6);
}

/* Escapes as docker's json-file does; returns whether all of it was valid UTF-8. */
bool put_escaped(const unsigned char *s, size_t length)
{
    bool valid = true;
    if (!plain[' ']) fill_plain();
    for (size_t i = 0; i < length;) {
        size_t run = i;
        while (run < length && plain[s[run]]) run++;
        put(s + i, run - i);
        if ((i = run) == length) break;
        size_t wide = sequence(s + i, length - i);
        if (wide == 0) {
            PUT("\\ufffd");
            valid = false;
            i++;
        } else if (wide == 1) {
            put_control(s[i++]);
        } else if (wide == 3 && s[i] == 0xe2 && s[i + 1] == 0x80 && (s[i + 2] & 0xfe) == 0xa8) {
            put(s[i + 2] == 0xa8 ? "\\u2028" : "\\u2029", 6);
            i += wide;
        } else {
            put(s + i, wide);
            i += wide;
        }
    }
    return valid;
}

void put_base64(const unsigned char *s, size_t length)
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
