/*
 * What the BLACS promise beyond the data of single calls: grids, contexts, order, buffering,
 * progress, settings. Four processes; an argument names a single case.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "semantics.h"

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"contexts_reused", contexts_reused}, /* first: it expects that no context was used before */
    {"grid_orders", grid_orders},
    {"grid_maps", grid_maps},
    {"grid_of_grid", grid_of_grid},
    {"grids_overlap", grids_overlap},
    {"grids_disjoint", grids_disjoint},
    {"grid_questions", grid_questions},
    {"settings", settings},
    {"first_in_first_out", first_in_first_out},
    {"big_sends_first", big_sends_first},
    {"small_sends_first", small_sends_first},
    {"sends_to_itself", sends_to_itself},
    {"other_shapes", other_shapes},
    {"unknown_letters", unknown_letters},
    {"spaces_apart", spaces_apart},
    {"sender_computes", sender_computes},
    {"broadcaster_computes", broadcaster_computes},
    {"nobody_waits_for_a_late_receiver", nobody_waits_for_a_late_receiver},
    {"free_buffers", free_buffers},
    {"barriers", barriers},
    {"repeatable", repeatable},
    {"coherent", coherent},
    {"rings_and_branches", rings_and_branches},
    {"clocks", clocks},
    {"exit_and_go_on", exit_and_go_on},
};

void sleep_for(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

int main(int argc, char **argv) {
    blacs_int me, processes;
    int known = argc < 2;
    Cblacs_pinfo(&me, &processes);
    if (processes != 4) {
        if (me == 0) fprintf(stderr, "run this with 4 processes\n");
        Cblacs_exit(0);
        return 2;
    }
    for (unsigned k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (argc > 1 && strcmp(argv[1], cases[k].name) != 0) continue;
        known = 1;
        cases[k].run();
    }
    if (!known && me == 0) fprintf(stderr, "no case %s\n", argv[1]);
    int code = known ? report() : 2;
    Cblacs_exit(0);
    return code;
}
