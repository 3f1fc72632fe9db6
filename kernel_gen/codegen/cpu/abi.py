"""The C interface between a plan and its CPU kernels, and between a process and a plan.

Both structs start with their size: a newer caller may append fields, an older kernel ignores them.
`KERNEL_ABI` heads every generated translation unit (it includes no header of the compiler's).
"""

from __future__ import annotations

ABI_VERSION = 1

KERNEL_ABI = """\
typedef unsigned long long gaf_u64;
typedef long long gaf_i64;

/* One call of one kernel. Operands stand in the order of the loop nest's buffers: `operands[i]` is
 * the tensor's first element, or the packed bytes where the kernel packs that constant.
 * `scratch`: shared bytes first, then scratch bytes for each thread, 64-byte aligned. */
typedef struct gaf_kernel_args {
  gaf_u64 size;
  void *const *operands;
  void *scratch;
  const gaf_i64 *dims; /* values of the program's symbols s0, s1, ... */
  int n_threads;
  void *stream; /* NPU queue; null on a CPU */
} gaf_kernel_args;
"""

PLAN_ABI = """\
/* One call of a segment of a plan. `values[i]` is the storage of plan value i (inputs, outputs and
 * the caller's own); values that live in the arena are ignored. Returns 0 or a gaf_status. */
typedef struct gaf_call {
  gaf_u64 size;
  unsigned segment;
  int n_threads;
  void *const *values;
  void *arena;
  const gaf_i64 *dims;
  void *stream;
} gaf_call;

typedef struct gaf_plan gaf_plan;
enum gaf_status { GAF_OK = 0, GAF_BAD_ARGUMENT = 1, GAF_NO_MEMORY = 2, GAF_KERNEL_FAILED = 3 };

#ifdef __cplusplus
extern "C" {
#endif
unsigned gaf_abi_version(void);
/* Bytes of the 64-byte aligned arena that each call with up to `n_threads` threads needs. */
gaf_u64 gaf_arena_bytes(const gaf_i64 *dims, int n_threads);
/* Packs `constants` (n of them, order of plan.json) into memory of the plan's own. Those that no
 * kernel packs are borrowed: they must outlive the plan. */
int gaf_create(const void *const *constants, gaf_u64 n, gaf_plan **plan);
/* Immutable after create: any number of threads may run one plan, each with its own arena. */
int gaf_run(const gaf_plan *plan, const gaf_call *call);
void gaf_destroy(gaf_plan *plan);
#ifdef __cplusplus
}
#endif
"""
