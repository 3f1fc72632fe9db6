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
#ifndef H_gaf_low_bits
#define H_gaf_low_bits
static inline gaf_u64 gaf_low_bits(int n) { return n < 64 ? (1ull << n) - 1 : ~0ull; }
#endif
#ifndef H_gaf_i32x8
#define H_gaf_i32x8
typedef int gaf_i32x8 __attribute__((vector_size(32)));
typedef int gaf_i32x8u __attribute__((vector_size(32), aligned(4), may_alias));
#endif
#ifndef H_gaf_ldn_f32x8
#define H_gaf_ldn_f32x8
static inline gaf_f32x8 gaf_ldn_f32x8(const float *p, int n) {
#if defined(__AVX512VL__) && defined(__AVX512BW__) && !defined(__clang__)
  const gaf_f32x8 r = (gaf_f32x8)__builtin_ia32_loadups256_mask((const float *)p, (gaf_f32x8){}, (unsigned char)(gaf_low_bits((int)n)));
#elif defined(__AVX__)
  const gaf_i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7}, moved = (lane < (int)n);
  const gaf_f32x8 r = (gaf_f32x8)__builtin_ia32_maskloadps256((const gaf_f32x8 *)p, moved);
#else
  gaf_f32x8 r;
  for (int l = 0; l < 8; l++) r[l] = l < n ? p[l] : (float)0;
#endif
  return r;
}
#endif
#ifndef H_gaf_stn_f32x8
#define H_gaf_stn_f32x8
static inline void gaf_stn_f32x8(float *p, gaf_f32x8 x, int n) {
  const gaf_f32x8 r = x;
#if defined(__AVX512VL__) && defined(__AVX512BW__) && !defined(__clang__)
  __builtin_ia32_storeups256_mask((float *)p, (gaf_f32x8)r, (unsigned char)(gaf_low_bits((int)n)));
#elif defined(__AVX__)
  const gaf_i32x8 lane = {0, 1, 2, 3, 4, 5, 6, 7}, moved = (lane < (int)n);
  __builtin_ia32_maskstoreps256((gaf_f32x8 *)p, moved, (gaf_f32x8)r);
#else
  for (int l = 0; l < 8; l++) if (l < n) p[l] = r[l];
#endif
}
#endif
static int k0_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {
  int status = 0;
  (void)tid; (void)nt;
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  float *__restrict b2 = (float *)args->operands[2];
  const gaf_i64 tn = (gaf_i64)(64) * (gaf_i64)((100 + 4095) / 4096);
  for (gaf_i64 t = tn * tid / nt; t < tn * (tid + 1) / nt; t++) {
    const gaf_i64 t1 = (t % ((100 + 4095) / 4096)) * 4096;
    const gaf_i64 t0 = ((t) / ((100 + 4095) / 4096));
    const gaf_i64 end = t1 + 4096 < 100 ? t1 + 4096 : 100;
    gaf_i64 j1 = t1;
    #pragma GCC unroll 2
    for (; j1 + 8 <= end; j1 += 8) {
      const gaf_f32x8 v2 = gaf_ld_f32x8(b0 + ((100) * t0 + j1));
      const gaf_f32x8 v3 = gaf_ld_f32x8(b1 + (j1));
      const gaf_f32x8 v4 = v2 + v3;
      const gaf_f32x8 v5 = gaf_max_f32x8((gaf_f32x8){}, v4);
      gaf_st_f32x8(b2 + ((100) * t0 + j1), v5);
    }
    if (j1 < end) {
      const gaf_f32x8 v6 = gaf_ldn_f32x8(b0 + ((100) * t0 + j1), (int)(end - j1));
      const gaf_f32x8 v7 = gaf_ldn_f32x8(b1 + (j1), (int)(end - j1));
      const gaf_f32x8 v8 = v6 + v7;
      const gaf_f32x8 v9 = gaf_max_f32x8((gaf_f32x8){}, v8);
      gaf_stn_f32x8(b2 + ((100) * t0 + j1), v9, (int)(end - j1));
    }
  }
  return status;
}
extern "C" int k0(const gaf_kernel_args *args) { return k0_body(args, 0, 1); }
