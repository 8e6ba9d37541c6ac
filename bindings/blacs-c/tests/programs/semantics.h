/* What the cases of semantics.c share. */
#ifndef SEMANTICS_H
#define SEMANTICS_H

#include "check.h"

/* Lets the process do nothing that the library sees, for a time in seconds. */
void sleep_for(double seconds);

/* Each case runs on all four processes and leaves no grid open. */
void grid_orders(void);
void grid_maps(void);
void grid_of_grid(void);
void grids_overlap(void);
void grids_disjoint(void);
void grid_questions(void);
void contexts_reused(void);
void settings(void);
void exit_and_go_on(void);

void first_in_first_out(void);
void big_sends_first(void);
void small_sends_first(void);
void sends_to_itself(void);
void other_shapes(void);
void unknown_letters(void);
void spaces_apart(void);
void sender_computes(void);
void broadcaster_computes(void);
void nobody_waits_for_a_late_receiver(void);
void free_buffers(void);

void barriers(void);
void repeatable(void);
void coherent(void);
void rings_and_branches(void);
void clocks(void);

#endif
