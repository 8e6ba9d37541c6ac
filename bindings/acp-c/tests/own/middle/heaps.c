/* The ranks' heaps. */
#include "middle.h"

void heaps(void)
{
    enum { COUNT = 20 };
    acp_ga_t blocks[COUNT];
    /* All ranks allocate from all heaps at the same time. */
    for (int n = 0; n < COUNT; n++) {
        int rank = (me + n) % ranks;
        blocks[n] = acp_malloc(8 + (size_t)n * 3, rank);
        CHECK(blocks[n] != ACP_GA_NULL && acp_query_rank(blocks[n]) == rank);
        CHECK(blocks[n] % 8 == 0);
        int words[2] = { me, n };
        put(blocks[n], words, sizeof words);
    }
    acp_sync();
    for (int n = 0; n < COUNT; n++) {
        int words[2];
        get(words, blocks[n], sizeof words);
        CHECK(words[0] == me && words[1] == n);
        acp_free(blocks[n]);
    }
    acp_sync();
    CHECK(acp_malloc(8, -1) == ACP_GA_NULL && acp_malloc(8, ranks) == ACP_GA_NULL);
    CHECK(acp_malloc((size_t)-1, me) == ACP_GA_NULL && acp_malloc((size_t)1 << 40, me) == ACP_GA_NULL);
    /* Neither an allocation nor a heap. */
    acp_free(ACP_GA_NULL);
    acp_free(acp_query_starter_ga(me));
    acp_free(blocks[0] + 1);
    acp_free(12345);
}
