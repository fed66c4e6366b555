/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/messages.h"

#include <stddef.h>

static const struct {
    unsigned    number;
    const char *remedy;
} messages[] = {
#define UCT_HA_MESSAGE_ROW(_number, _name, _says, _do) {_number, _do},
    UCT_HA_MESSAGES(UCT_HA_MESSAGE_ROW)
#undef UCT_HA_MESSAGE_ROW
};

const char *uct_ha_message_remedy(unsigned number)
{
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        if (messages[i].number == number) {
            return messages[i].remedy;
        }
    }
    return "";
}
