/*
 * A program that uses MPI for everything but its puts: ids and STADDs go through a collective, and the
 * memory of both is the same. MPI's library has threads of its own.
 */
#include "utofu_example.h"

#include <mpi.h>

int main(int count, char **words)
{
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t length = 1 << 20;
    char *block = malloc(length), part[5000];
    memset(block, rank, length);
    memset(part, 100 + rank, sizeof part);

    utofu_vcq_hdl_t vcq;
    utofu_vcq_id_t id;
    utofu_stadd_t here, there;
    must(utofu_create_vcq(0, 0, &vcq));
    must(utofu_query_vcq_id(vcq, &id));
    must(utofu_reg_mem(vcq, block, length, 0, &there));
    must(utofu_reg_mem(vcq, part, sizeof part, 0, &here));
    uint64_t mine[2] = {id, there}, *all = malloc(ranks * sizeof mine);
    MPI_Allgather(mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, MPI_COMM_WORLD);

    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    put(vcq, all[2 * next], here, all[2 * next + 1] + 4096, sizeof part, 9, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
    check(next_notice(vcq).edata == 9);
    check(block[4095] == rank && block[4096] == 100 + last && block[4096 + 4999] == 100 + last);
    /* MPI moves registered memory too. */
    int other = (int)block[4096];
    MPI_Sendrecv_replace(block, 8192, MPI_CHAR, next, 0, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(block[0] == last && block[4096] == 100 + (last + ranks - 1) % ranks && other == 100 + last);
    MPI_Barrier(MPI_COMM_WORLD);
    must(utofu_free_vcq(vcq));
    if (rank == 0)
        printf("beside: %d ranks\n", ranks);
    MPI_Finalize();
    return 0;
}
