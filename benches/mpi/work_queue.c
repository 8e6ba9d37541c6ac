/* A farm as `examples/work_farm.rs` runs it: rank 0 gives each worker one task at a time, and another for each result,
 * from whichever worker it arrives.
 *
 *   work_queue CORES TASKS */
#include "program.h"

enum { RESULT, TASK };
#define NONE ~0ull

typedef unsigned long long Word;

int main(int argc, char **argv) {
    begin(argc, argv, 1);
    Word tasks = numbers[0], next = 0;
    Word *done = zeros(tasks, sizeof *done);
    int is_right = ranks > 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    if (me == 0) {
        int working = 0;
        for (int worker = 1; worker < ranks; worker++) {
            Word task = next < tasks ? next++ : NONE;
            MPI_Send(&task, 1, MPI_UNSIGNED_LONG_LONG, worker, TASK, MPI_COMM_WORLD);
            working += task != NONE;
        }
        while (working) {
            Word result[2];
            MPI_Status status;
            MPI_Recv(result, 2, MPI_UNSIGNED_LONG_LONG, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
            if (result[0] < tasks) done[result[0]] = result[1];
            Word task = next < tasks ? next++ : NONE;
            MPI_Send(&task, 1, MPI_UNSIGNED_LONG_LONG, status.MPI_SOURCE, TASK, MPI_COMM_WORLD);
            working -= task == NONE;
        }
    } else {
        for (;;) {
            Word task;
            MPI_Recv(&task, 1, MPI_UNSIGNED_LONG_LONG, 0, TASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (task == NONE) break;
            Word result[2] = {task, task * task};
            MPI_Send(result, 2, MPI_UNSIGNED_LONG_LONG, 0, RESULT, MPI_COMM_WORLD);
        }
    }
    double took = (now() - begun) / (tasks ? tasks : 1);
    for (Word task = 0; me == 0 && task < tasks; task++) is_right &= done[task] == task * task;
    end("task", took, is_right);
    return 0;
}
