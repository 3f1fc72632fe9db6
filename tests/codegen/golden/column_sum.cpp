#ifndef GAF_KERNEL_ABI
#define GAF_KERNEL_ABI
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
#endif
#ifndef H_gaf_f32x8
#define H_gaf_f32x8
typedef float gaf_f32x8 __attribute__((vector_size(32)));
typedef float gaf_f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
#endif
#ifndef H_gaf_bc_gaf_f32x8
#define H_gaf_bc_gaf_f32x8
static inline gaf_f32x8 gaf_bc_gaf_f32x8(float s) { return s - (gaf_f32x8){}; }
#endif
#ifndef H_gaf_ld_f32x8
#define H_gaf_ld_f32x8
static inline gaf_f32x8 gaf_ld_f32x8(const float *p) { return *(const gaf_f32x8u *)p; }
#endif
#ifndef H_gaf_st_f32x8
#define H_gaf_st_f32x8
static inline void gaf_st_f32x8(float *p, gaf_f32x8 x) { *(gaf_f32x8u *)p = x; }
#endif
#ifndef H_gaf_barrier
#define H_gaf_barrier
#ifdef _OPENMP
#define GAF_BARRIER if (nt > 1) { _Pragma("omp barrier") }
#else
#define GAF_BARRIER
#endif
#endif
#ifndef H_gaf_omp
#define H_gaf_omp
#ifdef _OPENMP
extern "C" int omp_get_thread_num(void) noexcept;
extern "C" int omp_get_num_threads(void) noexcept;
#endif
#endif
static int k0_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {
  int status = 0;
  (void)tid; (void)nt;
  char *const common = (char *)args->scratch;
  char *const privates = common + 0;
  const gaf_i64 private_bytes = 512;
  char *const mine = privates + tid * private_bytes;
  int turn = 0;
  (void)common; (void)mine; (void)turn;
  const float *__restrict b0 = (const float *)args->operands[0];
  float *__restrict b1 = (float *)args->operands[1];
  {
    for (gaf_i64 i1 = 0; i1 < 64; i1 += 32) {
      gaf_f32x8 a1_0_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a1_1_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a1_2_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a1_3_0 = gaf_bc_gaf_f32x8(0.0f);
      const gaf_i64 s2n = (100 + 0) / 1;
      const gaf_i64 s2a = s2n * tid / nt * 1;
      gaf_i64 s2b = s2n * (tid + 1) / nt * 1;
      if (s2b > 100) s2b = 100;
      for (gaf_i64 c3 = s2a; c3 < s2b; c3 += 10) {
        const gaf_i64 c3e = c3 + 10 < s2b ? c3 + 10 : s2b;
        gaf_f32x8 w1_0_0 = gaf_bc_gaf_f32x8(0.0f);
        gaf_f32x8 w1_1_0 = gaf_bc_gaf_f32x8(0.0f);
        gaf_f32x8 w1_2_0 = gaf_bc_gaf_f32x8(0.0f);
        gaf_f32x8 w1_3_0 = gaf_bc_gaf_f32x8(0.0f);
        for (gaf_i64 r4 = c3; r4 < c3e; r4++) {
          const gaf_f32x8 v5 = gaf_ld_f32x8(b0 + (i1 + (64) * r4));
          w1_0_0 = w1_0_0 + v5;
          const gaf_f32x8 v6 = gaf_ld_f32x8(b0 + ((i1 + 8) + (64) * r4));
          w1_1_0 = w1_1_0 + v6;
          const gaf_f32x8 v7 = gaf_ld_f32x8(b0 + ((i1 + 16) + (64) * r4));
          w1_2_0 = w1_2_0 + v7;
          const gaf_f32x8 v8 = gaf_ld_f32x8(b0 + ((i1 + 24) + (64) * r4));
          w1_3_0 = w1_3_0 + v8;
        }
        a1_0_0 = a1_0_0 + w1_0_0;
        a1_1_0 = a1_1_0 + w1_1_0;
        a1_2_0 = a1_2_0 + w1_2_0;
        a1_3_0 = a1_3_0 + w1_3_0;
      }
      *(gaf_f32x8 *)(mine + 0 + turn * 64) = a1_0_0;
      *(gaf_f32x8 *)(mine + 128 + turn * 64) = a1_1_0;
      *(gaf_f32x8 *)(mine + 256 + turn * 64) = a1_2_0;
      *(gaf_f32x8 *)(mine + 384 + turn * 64) = a1_3_0;
      GAF_BARRIER
      a1_0_0 = gaf_bc_gaf_f32x8(0.0f);
      a1_1_0 = gaf_bc_gaf_f32x8(0.0f);
      a1_2_0 = gaf_bc_gaf_f32x8(0.0f);
      a1_3_0 = gaf_bc_gaf_f32x8(0.0f);
      for (gaf_i64 p = 0; p < nt; p++) {
        const char *const theirs = privates + p * private_bytes;
        const gaf_f32x8 oa1_0_0 = *(const gaf_f32x8 *)(theirs + 0 + turn * 64);
        const gaf_f32x8 oa1_1_0 = *(const gaf_f32x8 *)(theirs + 128 + turn * 64);
        const gaf_f32x8 oa1_2_0 = *(const gaf_f32x8 *)(theirs + 256 + turn * 64);
        const gaf_f32x8 oa1_3_0 = *(const gaf_f32x8 *)(theirs + 384 + turn * 64);
        a1_0_0 = a1_0_0 + oa1_0_0;
        a1_1_0 = a1_1_0 + oa1_1_0;
        a1_2_0 = a1_2_0 + oa1_2_0;
        a1_3_0 = a1_3_0 + oa1_3_0;
      }
      turn ^= 1;
      const gaf_f32x8 v9 = a1_0_0;
      const gaf_f32x8 v10 = a1_1_0;
      const gaf_f32x8 v11 = a1_2_0;
      const gaf_f32x8 v12 = a1_3_0;
      if (tid == 0) {
        gaf_st_f32x8(b1 + (i1), v9);
      }
      if (tid == 0) {
        gaf_st_f32x8(b1 + ((i1 + 8)), v10);
      }
      if (tid == 0) {
        gaf_st_f32x8(b1 + ((i1 + 16)), v11);
      }
      if (tid == 0) {
        gaf_st_f32x8(b1 + ((i1 + 24)), v12);
      }
    }
  }
  return status;
}
extern "C" int k0(const gaf_kernel_args *args) {
#ifdef _OPENMP
  if (args->n_threads > 1) {
    int status = 0;
#pragma omp parallel num_threads(args->n_threads) reduction(| : status)
    status |= k0_body(args, omp_get_thread_num(), omp_get_num_threads());
    return status;
  }
#endif
  return k0_body(args, 0, 1);
}
