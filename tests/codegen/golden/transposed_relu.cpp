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
#ifndef H_gaf_ld_f32x8
#define H_gaf_ld_f32x8
static inline gaf_f32x8 gaf_ld_f32x8(const float *p) { return *(const gaf_f32x8u *)p; }
#endif
#ifndef H_gaf_transpose_f32x8
#define H_gaf_transpose_f32x8
static inline __attribute__((always_inline)) void gaf_transpose_f32x8(gaf_f32x8 *r) {
  { const gaf_f32x8 a = r[0], b = r[1];
    r[0] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    r[1] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15); }
  { const gaf_f32x8 a = r[2], b = r[3];
    r[2] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    r[3] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15); }
  { const gaf_f32x8 a = r[4], b = r[5];
    r[4] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    r[5] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15); }
  { const gaf_f32x8 a = r[6], b = r[7];
    r[6] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    r[7] = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15); }
  { const gaf_f32x8 a = r[0], b = r[2];
    r[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    r[2] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15); }
  { const gaf_f32x8 a = r[1], b = r[3];
    r[1] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    r[3] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15); }
  { const gaf_f32x8 a = r[4], b = r[6];
    r[4] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    r[6] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15); }
  { const gaf_f32x8 a = r[5], b = r[7];
    r[5] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    r[7] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15); }
  { const gaf_f32x8 a = r[0], b = r[4];
    r[0] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    r[4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15); }
  { const gaf_f32x8 a = r[1], b = r[5];
    r[1] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    r[5] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15); }
  { const gaf_f32x8 a = r[2], b = r[6];
    r[2] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    r[6] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15); }
  { const gaf_f32x8 a = r[3], b = r[7];
    r[3] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    r[7] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15); }
}
#endif
#ifndef H_gaf_max_f32x8
#define H_gaf_max_f32x8
static inline gaf_f32x8 gaf_max_f32x8(gaf_f32x8 a, gaf_f32x8 b) {
#if defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_maxps256(a, b);
#else
  return a > b ? a : b;
#endif
}
#endif
#ifndef H_gaf_st_f32x8
#define H_gaf_st_f32x8
static inline void gaf_st_f32x8(float *p, gaf_f32x8 x) { *(gaf_f32x8u *)p = x; }
#endif
#ifndef H_gaf_bc_gaf_f32x8
#define H_gaf_bc_gaf_f32x8
static inline gaf_f32x8 gaf_bc_gaf_f32x8(float s) { return s - (gaf_f32x8){}; }
#endif
static int k0_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {
  int status = 0;
  (void)tid; (void)nt;
  const float *__restrict b0 = (const float *)args->operands[0];
  float *__restrict b1 = (float *)args->operands[1];
  const gaf_i64 tn = (gaf_i64)((32 + 127) / 128) * (gaf_i64)((64 + 127) / 128);
  for (gaf_i64 t = tn * tid / nt; t < tn * (tid + 1) / nt; t++) {
    const gaf_i64 t1 = (t % ((64 + 127) / 128)) * 128;
    const gaf_i64 t0 = (((t) / ((64 + 127) / 128))) * 128;
    const gaf_i64 q1 = t0 + 128 < 32 ? t0 + 128 : 32;
    const gaf_i64 q2 = t1 + 128 < 64 ? t1 + 128 : 64;
    const gaf_i64 e3 = t0 + (q1 - t0) / 8 * 8;
    const gaf_i64 e4 = t1 + (q2 - t1) / 8 * 8;
    for (gaf_i64 u5 = t0; u5 < e3; u5 += 8) {
      for (gaf_i64 v6 = t1; v6 < e4; v6 += 8) {
        gaf_f32x8 x7[8];
        #pragma GCC unroll 8
        for (int l = 0; l < 8; l++) x7[l] = gaf_ld_f32x8(b0 + (u5 + (32) * v6) + (32) * l);
        gaf_transpose_f32x8(x7);
        #pragma GCC unroll 8
        for (int k8 = 0; k8 < 8; k8++) {
          const gaf_f32x8 v9 = x7[k8];
          const gaf_f32x8 v10 = gaf_max_f32x8((gaf_f32x8){}, v9);
          gaf_st_f32x8(b1 + ((64) * (u5 + k8) + v6), v10);
        }
      }
    }
    for (gaf_i64 i11 = t0; i11 < e3; i11++) {
      gaf_i64 j12 = e4;
      for (; j12 + 8 <= q2; j12 += 8) {
        gaf_f32x8 g13 = gaf_bc_gaf_f32x8(0.0f);
        for (int l = 0; l < 8; l++) g13[l] = b0[(i11 + (32) * (j12 + l))];
        const gaf_f32x8 v14 = g13;
        const gaf_f32x8 v15 = gaf_max_f32x8((gaf_f32x8){}, v14);
        gaf_st_f32x8(b1 + ((64) * i11 + j12), v15);
      }
    }
    for (gaf_i64 i16 = e3; i16 < q1; i16++) {
      gaf_i64 j17 = t1;
      for (; j17 + 8 <= q2; j17 += 8) {
        gaf_f32x8 g18 = gaf_bc_gaf_f32x8(0.0f);
        for (int l = 0; l < 8; l++) g18[l] = b0[(i16 + (32) * (j17 + l))];
        const gaf_f32x8 v19 = g18;
        const gaf_f32x8 v20 = gaf_max_f32x8((gaf_f32x8){}, v19);
        gaf_st_f32x8(b1 + ((64) * i16 + j17), v20);
      }
    }
  }
  return status;
}
extern "C" int k0(const gaf_kernel_args *args) { return k0_body(args, 0, 1); }
