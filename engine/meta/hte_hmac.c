/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "hte_hmac.h"

#include <string.h>

#ifdef HAVE_LIBCRYPTO
#include <openssl/crypto.h>
#include <openssl/evp.h>

bool hte_hmac_is_built(void)
{
    return true;
}

bool hte_hmac(const void *key, size_t key_length, const struct hte_bytes *pieces, int num_pieces,
              uint8_t mac[HTE_HMAC_LEN])
{
    EVP_PKEY   *pkey    = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key, key_length);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t      length  = HTE_HMAC_LEN;
    bool good = pkey != NULL && context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, pkey) == 1;
    int  i;

    for (i = 0; good && i < num_pieces; i++) {
        good = EVP_DigestSignUpdate(context, pieces[i].bytes, pieces[i].length) == 1;
    }
    good = good && EVP_DigestSignFinal(context, mac, &length) == 1 && length == HTE_HMAC_LEN;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(pkey);
    return good;
}

bool hte_hmac_equal(const uint8_t a[HTE_HMAC_LEN], const uint8_t b[HTE_HMAC_LEN])
{
    return CRYPTO_memcmp(a, b, HTE_HMAC_LEN) == 0;
}

void hte_wipe(void *bytes, size_t length)
{
    OPENSSL_cleanse(bytes, length);
}
#else
bool hte_hmac_is_built(void)
{
    return false;
}

bool hte_hmac(const void *key, size_t key_length, const struct hte_bytes *pieces, int num_pieces,
              uint8_t mac[HTE_HMAC_LEN])
{
    (void)key;
    (void)key_length;
    (void)pieces;
    (void)num_pieces;
    (void)mac;
    return false;
}

bool hte_hmac_equal(const uint8_t a[HTE_HMAC_LEN], const uint8_t b[HTE_HMAC_LEN])
{
    (void)a;
    (void)b;
    return false;
}

void hte_wipe(void *bytes, size_t length)
{
    explicit_bzero(bytes, length);
}
#endif

void hte_hex_encode(const void *bytes, size_t length, char *text)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t    *in       = bytes;
    size_t            i;

    for (i = 0; i < length; i++) {
        *text++ = digits[in[i] >> 4];
        *text++ = digits[in[i] & 15];
    }
    *text = '\0';
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hte_hex_decode(const char *text, void *bytes, size_t length)
{
    uint8_t *out = bytes;
    int      high, low;
    size_t   i;

    if (strlen(text) != 2 * length) {
        return false;
    }
    for (i = 0; i < length; i++) {
        high = hex_digit(text[2 * i]);
        low  = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
