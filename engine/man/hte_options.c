/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the options of libhte for the page hte.7: name, default and help, each as roff. */
#include <stdio.h>

#include "hte.h"

static void print_roff(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '-' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text == '\\' ? 'e' : *text);
    }
}

int main(void)
{
    struct hte_option_help option;
    unsigned               i;

    for (i = 0; hte_option_help(i, &option) == HTE_OK; i++) {
        printf(".TP\n.B ");
        print_roff(option.key);
        if (option.value[0] != '\0') {
            printf(" \\fR(default ");
            print_roff(option.value);
            printf(")");
        }
        printf("\n");
        print_roff(option.help);
        printf("\n");
    }
    return i > 0 ? 0 : 1;
}
