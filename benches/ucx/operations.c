/* Times operations of UCX (its layer UCP) between two processes.
 *
 *   operations SAMPLE_NS SAMPLES CORE...
 */
#include "sampling.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { LONGEST_NAME = 16 << 10 };

/* What each process tells the other. */
typedef struct {
    size_t bytes;
    char data[LONGEST_NAME];
} Name;

/* Memory of both processes. */
typedef struct {
    Shared sampling;
    Name worker[2], key;
    uint64_t window;
    Line connected;
} Both;

static Both *both;
static ucp_worker_h worker;
static ucp_ep_h peer;
static ucp_rkey_h key;
static uint64_t window;
static uint64_t sent, received;

static void check(ucs_status_t status, const char *what) {
    if (status == UCS_OK) return;
    fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
    exit(1);
}

/* Waits until an operation is complete. */
static void finish(ucs_status_ptr_t request, const char *what) {
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker);
        ucp_request_free(request);
    }
    check(status, what);
}

static void flush(void) {
    ucp_request_param_t param = {0};
    finish(ucp_ep_flush_nbx(peer, &param), "flush");
}

static void put(long times, int bytes) {
    ucp_request_param_t param = {0};
    for (long i = 0; i < times; i++) {
        finish(ucp_put_nbx(peer, &sent, bytes, window, key, &param), "put");
        flush();
    }
}

static void fetch_add(long times, int bytes) {
    uint64_t one = 1;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype = ucp_dt_make_contig(bytes),
        .reply_buffer = &received,
    };
    for (long i = 0; i < times; i++)
        finish(ucp_atomic_op_nbx(peer, UCP_ATOMIC_OP_ADD, &one, 1, window, key, &param), "fetch-add");
}

static void message(long times, int bytes) {
    ucp_request_param_t param = {0};
    for (long i = 0; i < times; i++) {
        if (me == 0) finish(ucp_tag_send_nbx(peer, &sent, bytes, 0, &param), "send");
        finish(ucp_tag_recv_nbx(worker, &received, bytes, 0, ~0ull, &param), "receive");
        if (me == 1) finish(ucp_tag_send_nbx(peer, &sent, bytes, 0, &param), "send");
    }
}

static void tell(Name *name, const void *data, size_t bytes) {
    if (bytes > LONGEST_NAME) {
        fprintf(stderr, "%zu bytes are too many for a name\n", bytes);
        exit(1);
    }
    name->bytes = bytes;
    memcpy(name->data, data, bytes);
}

/* The other process has ended too early. */
static void lost(int signal) {
    (void)signal;
    _exit(1);
}

int main(int argc, char **argv) {
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (both == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    shared = &both->sampling;
    ranks = 2;
    signal(SIGCHLD, lost);
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    me = child == 0;
    if (me == 1) prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!prepare(argc, argv)) return 2;

    ucp_context_h context;
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64 | UCP_FEATURE_TAG,
    };
    check(ucp_init(&params, NULL, &context), "ucp_init");
    ucp_worker_params_t worker_params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };
    check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    ucp_address_t *address;
    size_t bytes;
    check(ucp_worker_get_address(worker, &address, &bytes), "ucp_worker_get_address");
    tell(&both->worker[me], address, bytes);
    ucp_mem_map_params_t map_params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = 4096,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_h memory;
    check(ucp_mem_map(context, &map_params, &memory), "ucp_mem_map");
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    check(ucp_mem_query(memory, &attr), "ucp_mem_query");
    memset(attr.address, 0, 4096);
    if (me == 1) {
        void *packed;
        check(ucp_rkey_pack(context, memory, &packed, &bytes), "ucp_rkey_pack");
        tell(&both->key, packed, bytes);
        both->window = (uint64_t)(uintptr_t)attr.address;
        ucp_rkey_buffer_release(packed);
    }
    meet();
    ucp_ep_params_t ep_params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address = (ucp_address_t *)both->worker[1 - me].data,
    };
    check(ucp_ep_create(worker, &ep_params, &peer), "ucp_ep_create");
    check(ucp_ep_rkey_unpack(peer, both->key.data, &key), "ucp_ep_rkey_unpack");
    window = both->window;

    /* The first operations connect the two, which needs the progress of both. */
    message(2, 8);
    if (me == 0) {
        put(1, 8);
        fetch_add(1, 8);
    }
    flush();
    atomic_fetch_add(&both->connected.word, 1);
    while (atomic_load(&both->connected.word) < 2) ucp_worker_progress(worker);

    measure("put", 8, 1, 1, put);
    measure("fetch-add", 8, 1, 1, fetch_add);
    measure("message", 8, 2, 0, message);
    fflush(stdout);
    signal(SIGCHLD, SIG_DFL);
    meet();
    /* Neither frees anything while the other may still use it. */
    if (me == 1) _exit(0);
    int status;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
