/* Says when rank 0 has passed the first barrier. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("passed");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
