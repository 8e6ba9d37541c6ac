/* Work spaces. */
#include "middle.h"

static void use(acp_wsd_t space, size_t size)
{
    unsigned char bytes[64] = { 0 };
    acp_element_t own = lent(bytes, size);
    CHECK(acp_read_ws(space, own.ga, size, 0) == 0);
    get(bytes, own.ga, size);
    for (size_t n = 0; n < size; n++)
        CHECK(bytes[n] == 0);
    acp_sync();
    /* Each rank writes every ranks-th byte. */
    for (size_t n = (size_t)me; n < size; n += (size_t)ranks) {
        unsigned char byte = (unsigned char)(n + 1);
        CHECK(acp_write_ws(space, lent(&byte, 1).ga, 1, n) == 0);
    }
    acp_sync();
    CHECK(acp_read_ws(space, own.ga, size - 3, 3) == 0);
    get(bytes, own.ga, size - 3);
    for (size_t n = 3; n < size; n++)
        CHECK(bytes[n - 3] == n + 1);
    /* Outside, and global memory that does not exist. */
    CHECK(acp_read_ws(space, own.ga, 2, size - 1) == 1 && acp_write_ws(space, own.ga, (size_t)-1, 1) == 1);
    CHECK(acp_read_ws(space, ACP_GA_NULL, 1, 0) == 1 && acp_write_ws(space, 12345, 8, 0) == 1);
    acp_sync();
}

void spaces(void)
{
    acp_wsd_t whole = acp_create_ws(40);
    CHECK(acp_setparams_ws((size_t)ranks - 1, 8) == 0);
    acp_wsd_t striped = acp_create_ws(61);
    CHECK(whole != ACP_WSD_NULL && striped != ACP_WSD_NULL && whole != striped);
    use(whole, 40);
    use(striped, 61);
    /* Not collective. */
    if (me == 0)
        acp_destroy_ws(whole);
    acp_sync();
    unsigned char byte = 0;
    CHECK(acp_read_ws(whole, lent(&byte, 1).ga, 1, 0) == 1);
    if (me != 0)
        acp_destroy_ws(whole);
    acp_destroy_ws(striped);
    acp_destroy_ws(striped);
    CHECK(acp_write_ws(striped, lent(&byte, 1).ga, 1, 0) == 1);
    /* Distributions that are none. */
    acp_setparams_ws((size_t)ranks, 8);
    CHECK(acp_create_ws(8) == ACP_WSD_NULL);
    acp_setparams_ws((size_t)-1, 8);
    CHECK(acp_create_ws(8) == ACP_WSD_NULL);
    acp_setparams_ws(0, 0);
    CHECK(acp_create_ws(8) == ACP_WSD_NULL);
    acp_setparams_ws(0, 1 << 20);
    CHECK(acp_create_ws((size_t)-1) == ACP_WSD_NULL);
}
