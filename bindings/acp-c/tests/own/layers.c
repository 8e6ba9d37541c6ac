/*
 * The program has a middle layer of its own: the library starts and ends that one, and fills its
 * variables.
 */
#include <string.h>

#include "acp.h"
#include "check.h"

size_t iacp_starter_memory_size_dl, iacp_starter_memory_size_cl;
extern acp_ga_t iacp_query_starter_ga_dl(int rank);
extern acp_ga_t iacp_query_starter_ga_cl(int rank);

static char calls[100];

static int called(const char *name)
{
    strcat(calls, name);
    CHECK(acp_rank() >= 0);
    return 0;
}

int iacp_init_dl(void)
{
    int me = acp_rank();
    CHECK(iacp_starter_memory_size_dl == 4096 && iacp_starter_memory_size_cl == 2048);
    char *data = acp_query_address(iacp_query_starter_ga_dl(me)), *channels = acp_query_address(iacp_query_starter_ga_cl(me));
    char *starter = acp_query_address(acp_query_starter_ga(me));
    CHECK(data != NULL && channels != NULL && starter != NULL);
    CHECK(data[4095] == 0 && channels[2047] == 0 && starter[1023] == 0);
    CHECK(acp_query_address(iacp_query_starter_ga_dl(me) + 4096) == NULL && iacp_query_starter_ga_cl(acp_procs()) == ACP_GA_NULL);
    memset(data, 1, 4096);
    memset(channels, 2, 2048);
    return called("init_dl ");
}

int iacp_init_cl(void) { return called("init_cl "); }
int iacp_finalize_cl(void) { return called("finalize_cl "); }
int iacp_finalize_dl(void) { return called("finalize_dl "); }
void iacp_abort_cl(void) { called("abort_cl "); }
void iacp_abort_dl(void) { called("abort_dl "); }

int main(int argc, char **argv)
{
    CHECK(acp_init(&argc, &argv) == 0);
    CHECK(argc == 3 && strcmp(argv[1], "-a") == 0 && strcmp(argv[2], "b") == 0 && argv[3] == NULL);
    CHECK(acp_reset(acp_rank()) == 0);
    CHECK(acp_finalize() == 0);
    CHECK(strcmp(calls, "init_dl init_cl finalize_cl finalize_dl init_dl init_cl finalize_cl finalize_dl ") == 0);
    return check_result("layers");
}
