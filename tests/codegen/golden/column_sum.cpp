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
static int k0_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {
  int status = 0;
  (void)tid; (void)nt;
  const float *__restrict b0 = (const float *)args->operands[0];
  float *__restrict b1 = (float *)args->operands[1];
  {
    const gaf_i64 t1n = (gaf_i64)((64 + 31) / 32);
    for (gaf_i64 t1 = t1n * tid / nt; t1 < t1n * (tid + 1) / nt; t1++) {
      const gaf_i64 t10 = (t1) * 32;
      gaf_f32x8 a1_0_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a1_1_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a1_2_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a1_3_0 = gaf_bc_gaf_f32x8(0.0f);
      for (gaf_i64 c2 = 0; c2 < 100; c2 += 10) {
        const gaf_i64 c2e = c2 + 10 < 100 ? c2 + 10 : 100;
        gaf_f32x8 w1_0_0 = gaf_bc_gaf_f32x8(0.0f);
        gaf_f32x8 w1_1_0 = gaf_bc_gaf_f32x8(0.0f);
        gaf_f32x8 w1_2_0 = gaf_bc_gaf_f32x8(0.0f);
        gaf_f32x8 w1_3_0 = gaf_bc_gaf_f32x8(0.0f);
        for (gaf_i64 r3 = c2; r3 < c2e; r3++) {
          const gaf_f32x8 v4 = gaf_ld_f32x8(b0 + (t10 + (64) * r3));
          w1_0_0 = w1_0_0 + v4;
          const gaf_f32x8 v5 = gaf_ld_f32x8(b0 + ((t10 + 8) + (64) * r3));
          w1_1_0 = w1_1_0 + v5;
          const gaf_f32x8 v6 = gaf_ld_f32x8(b0 + ((t10 + 16) + (64) * r3));
          w1_2_0 = w1_2_0 + v6;
          const gaf_f32x8 v7 = gaf_ld_f32x8(b0 + ((t10 + 24) + (64) * r3));
          w1_3_0 = w1_3_0 + v7;
        }
        a1_0_0 = a1_0_0 + w1_0_0;
        a1_1_0 = a1_1_0 + w1_1_0;
        a1_2_0 = a1_2_0 + w1_2_0;
        a1_3_0 = a1_3_0 + w1_3_0;
      }
      const gaf_f32x8 v8 = a1_0_0;
      const gaf_f32x8 v9 = a1_1_0;
      const gaf_f32x8 v10 = a1_2_0;
      const gaf_f32x8 v11 = a1_3_0;
      gaf_st_f32x8(b1 + (t10), v8);
      gaf_st_f32x8(b1 + ((t10 + 8)), v9);
      gaf_st_f32x8(b1 + ((t10 + 16)), v10);
      gaf_st_f32x8(b1 + ((t10 + 24)), v11);
    }
  }
  return status;
}
extern "C" int k0(const gaf_kernel_args *args) { return k0_body(args, 0, 1); }
