/*
 * Performs an operation many times, one after another, on the word of rank 0 or of the last rank.
 * Usage: latency add4|add8|copy8|copy4096 local|remote TIMES
 */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv) != 0 || argc != 4)
        return 1;
    const char *what = argv[1];
    int target = strcmp(argv[2], "local") == 0 ? 0 : acp_procs() - 1, times = atoi(argv[3]);
    acp_ga_t own = acp_query_starter_ga(0), there = acp_query_starter_ga(target) + 4096;
    acp_sync();
    if (acp_rank() == 0) {
        for (int i = 0; i < times; i++) {
            acp_handle_t handle = ACP_HANDLE_NULL;
            if (strcmp(what, "add4") == 0)
                handle = acp_add4(own, there, 1, ACP_HANDLE_NULL);
            else if (strcmp(what, "add8") == 0)
                handle = acp_add8(own, there, 1, ACP_HANDLE_NULL);
            else if (strcmp(what, "copy8") == 0)
                handle = acp_copy(there, own, 8, ACP_HANDLE_NULL);
            else if (strcmp(what, "copy4096") == 0)
                handle = acp_copy(there, own, 4096, ACP_HANDLE_NULL);
            if (handle == ACP_HANDLE_NULL)
                acp_abort("no operation");
            acp_complete(handle);
        }
        uint32_t *word = acp_query_address(own);
        if (strncmp(what, "add", 3) == 0 && times > 0 && *word != (uint32_t)times - 1)
            acp_abort("a wrong value");
    }
    acp_sync();
    return acp_finalize() == 0 ? 0 : 1;
}
