/* Word count with ACP: all ranks count the words of their lines in one map, which is spread over
 * their memories. The count of a word is a word of global memory that each rank adds to by an atomic.
 *
 *     cc acp_words.c -o acp_words $(pkg-config --cflags --libs acp)
 *     onesided run -n 3 -- ./acp_words --acp-size-smem-dl 1048576 [file] */
#include <acp.h>
#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys have a fixed size, so that the count behind a key is aligned. */
enum { KEY = 24, SLOTS = 64, LINE = 1024 };

static const char *const LINES[] = {
    "a rank that owns neither source nor destination copies from one to the other",
    "the map is in the memory of all ranks and any rank finds a key",
    "a key selects its rank and its slot there",
    "the count of a word is a word that any rank adds to",
};

/* Memory of this rank with a global address: key, zero, and the result of an atomic. */
static struct buffer {
    char key[KEY];
    uint64_t zero, before;
} *own;
static acp_ga_t own_ga;

static void count(acp_map_t map, const char *word, size_t length)
{
    memset(own->key, 0, KEY);
    for (size_t n = 0; n < length && n < KEY - 1; n++)
        own->key[n] = (char)tolower((unsigned char)word[n]);
    own->zero = 0;
    acp_pair_t pair = { { own_ga, KEY }, { own_ga + KEY, sizeof own->zero } };
    /* A key that is present keeps its count. */
    acp_insert_map(map, pair);
    acp_pair_t found = acp_dereference_map_it(acp_find_map(map, pair.first));
    if (found.second.ga == ACP_GA_NULL) {
        acp_abort("no room for a word: pass --acp-size-smem-dl");
        exit(1);
    }
    acp_complete(acp_add8(own_ga + offsetof(struct buffer, before), found.second.ga, 1, ACP_HANDLE_NULL));
}

static void count_line(acp_map_t map, const char *line)
{
    while (*line != 0) {
        size_t length = strcspn(line, " \t\r\n.,;:!?()\"");
        if (length > 0)
            count(map, line, length);
        line += length + (line[length] != 0);
    }
}

static void count_all(acp_map_t map, const char *file)
{
    int line = 0, me = acp_rank(), ranks = acp_procs();
    if (file == NULL) {
        for (; line < (int)(sizeof LINES / sizeof *LINES); line++)
            if (line % ranks == me)
                count_line(map, LINES[line]);
        return;
    }
    FILE *in = fopen(file, "r");
    if (in == NULL) {
        acp_abort("the file cannot be opened");
        exit(1);
    }
    char text[LINE];
    for (; fgets(text, LINE, in) != NULL; line++)
        if (line % ranks == me)
            count_line(map, text);
    fclose(in);
}

static int by_word(const void *left, const void *right)
{
    return strcmp(left, right);
}

/* Prints all words in the order of letters. */
static void print(acp_map_t map)
{
    size_t size = acp_size_map(map), n = 0;
    struct word {
        char key[KEY];
        uint64_t count;
    } *words = calloc(size, sizeof *words);
    for (acp_map_it_t it = acp_begin_map(map); it.elem != ACP_GA_NULL && n < size; it = acp_increment_map_it(it)) {
        acp_pair_t pair = acp_dereference_map_it(it);
        acp_handle_t key = acp_copy(own_ga, pair.first.ga, KEY, ACP_HANDLE_NULL);
        acp_complete(acp_copy(own_ga + KEY, pair.second.ga, sizeof own->zero, key));
        memcpy(words[n].key, own->key, KEY);
        words[n++].count = own->zero;
    }
    qsort(words, n, sizeof *words, by_word);
    for (size_t word = 0; word < n; word++)
        printf("%4" PRIu64 " %s\n", words[word].count, words[word].key);
    free(words);
}

int main(int argc, char **argv)
{
    if (acp_init(&argc, &argv) != 0)
        return 1;
    int me = acp_rank(), ranks = acp_procs();
    own_ga = acp_malloc(sizeof *own, me);
    own = acp_query_address(own_ga);
    if (own == NULL) {
        acp_abort("no memory: pass --acp-size-smem-dl");
        exit(1);
    }
    /* Rank 0 creates the map, and leaves its three words where every rank finds them. */
    acp_map_t map, *shared = acp_query_address(acp_query_starter_ga(me));
    if (me == 0) {
        int *on = malloc((size_t)ranks * sizeof *on);
        for (int rank = 0; rank < ranks; rank++)
            on[rank] = rank;
        *shared = acp_create_map(ranks, on, SLOTS, 0);
        free(on);
    }
    acp_sync();
    if (me != 0)
        acp_complete(acp_copy(acp_query_starter_ga(me), acp_query_starter_ga(0), sizeof map, ACP_HANDLE_NULL));
    map = *shared;
    count_all(map, argc > 1 ? argv[1] : NULL);
    acp_sync();
    if (me == 0) {
        print(map);
        acp_destroy_map(map);
    }
    acp_free(own_ga);
    return acp_finalize() != 0;
}
