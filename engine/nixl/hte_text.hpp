/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_NIXL_TEXT_H_
#define HTE_NIXL_TEXT_H_

/* NIXL's notifications are bytes, those of libhte texts: what is not printable ASCII, and '%', becomes %XX. */

#include <cstdio>
#include <cstdlib>
#include <string>

inline std::string hte_text_of(const std::string &bytes)
{
    std::string text;
    char        code[4];

    for (unsigned char byte : bytes) {
        if (byte >= 0x20 && byte < 0x7f && byte != '%') {
            text += static_cast<char>(byte);
        } else {
            snprintf(code, sizeof(code), "%%%02x", byte);
            text += code;
        }
    }
    return text;
}

inline std::string hte_bytes_of(const char *text)
{
    std::string bytes;

    for (; *text != '\0'; ++text) {
        if (text[0] == '%' && text[1] != '\0' && text[2] != '\0') {
            const char code[] = {text[1], text[2], '\0'};

            bytes += static_cast<char>(strtoul(code, nullptr, 16));
            text += 2;
        } else {
            bytes += *text;
        }
    }
    return bytes;
}

#endif
