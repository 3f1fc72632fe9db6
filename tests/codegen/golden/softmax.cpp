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
#ifndef H_gaf_live_gaf_i32x8
#define H_gaf_live_gaf_i32x8
static inline gaf_i32x8 gaf_live_gaf_i32x8(int n) { return (gaf_i32x8){0, 1, 2, 3, 4, 5, 6, 7} < (int)n; }
#endif
#ifndef H_gaf_f32x4
#define H_gaf_f32x4
typedef float gaf_f32x4 __attribute__((vector_size(16)));
typedef float gaf_f32x4u __attribute__((vector_size(16), aligned(4), may_alias));
#endif
#ifndef H_gaf_f32x2
#define H_gaf_f32x2
typedef float gaf_f32x2 __attribute__((vector_size(8)));
typedef float gaf_f32x2u __attribute__((vector_size(8), aligned(4), may_alias));
#endif
#ifndef H_gaf_fold_maximum_f32x8m4
#define H_gaf_fold_maximum_f32x8m4
static inline float gaf_fold_maximum_f32x8m4(gaf_f32x8 v8) {
  const gaf_f32x4 a4 = __builtin_shufflevector(v8, v8, 0, 1, 2, 3);
  const gaf_f32x4 b4 = __builtin_shufflevector(v8, v8, 4, 5, 6, 7);
  const gaf_f32x4 v4 = (a4 > b4) | (a4 != a4) ? a4 : b4;
  const gaf_f32x2 a2 = __builtin_shufflevector(v4, v4, 0, 1);
  const gaf_f32x2 b2 = __builtin_shufflevector(v4, v4, 2, 3);
  const gaf_f32x2 v2 = (a2 > b2) | (a2 != a2) ? a2 : b2;
  const float p = v2[0], q = v2[1];
  return (p > q) | (p != p) ? p : q;
}
#endif
#ifndef H_gaf_scale_f32x8
#define H_gaf_scale_f32x8
static inline gaf_f32x8 gaf_scale_f32x8(gaf_f32x8 p, gaf_f32x8 t) {
#if defined(__AVX512F__) && 8 == 16
  return __builtin_ia32_scalefps512_mask(p, t - 12582912.0f, p, -1, 4);
#else
  /* the low bits of t are k; two factors, as one does not reach the least subnormal */
  const gaf_i32x8 n = (gaf_i32x8)t, h = ((n >> 1) << 23) + 0x3f800000;
  return p * (gaf_f32x8)h * (gaf_f32x8)((n << 23) - h + 0x7f000000);
#endif
}
#endif
#ifndef H_gaf_min_f32x8
#define H_gaf_min_f32x8
static inline gaf_f32x8 gaf_min_f32x8(gaf_f32x8 a, gaf_f32x8 b) {
#if defined(__AVX__) && !defined(__clang__)
  return __builtin_ia32_minps256(a, b);
#else
  return a < b ? a : b;
#endif
}
#endif
#ifndef H_gaf_exp_f32x8
#define H_gaf_exp_f32x8
static inline gaf_f32x8 gaf_exp_f32x8(gaf_f32x8 x) {
  const gaf_f32x8 high = 89.0f + (gaf_f32x8){};
  const gaf_i32x8 gone = x < -104.0f;
  x = gone ? (gaf_f32x8){} : gaf_min_f32x8(high, x); /* a NaN stays */
  const gaf_f32x8 t = x * 1.44269504088896341f + 12582912.0f, k = t - 12582912.0f;
  const gaf_f32x8 r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  const gaf_f32x8 r2 = r * r;
  gaf_f32x8 p = (0.0013818938750773668f * r + 0.008368703536689281f) * r2 +
        (0.04166828840970993f * r + 0.1666652113199234f);
  p = (p * r + 0.4999999403953552f) * r2 + r;
  return gone ? (gaf_f32x8){} : gaf_scale_f32x8(p + 1.0f, t);
}
#endif
#ifndef H_gaf_fold_add_f32x8m4
#define H_gaf_fold_add_f32x8m4
static inline float gaf_fold_add_f32x8m4(gaf_f32x8 v8) {
  const gaf_f32x4 a4 = __builtin_shufflevector(v8, v8, 0, 1, 2, 3);
  const gaf_f32x4 b4 = __builtin_shufflevector(v8, v8, 4, 5, 6, 7);
  const gaf_f32x4 v4 = a4 + b4;
  const gaf_f32x2 a2 = __builtin_shufflevector(v4, v4, 0, 1);
  const gaf_f32x2 b2 = __builtin_shufflevector(v4, v4, 2, 3);
  const gaf_f32x2 v2 = a2 + b2;
  const float p = v2[0], q = v2[1];
  return p + q;
}
#endif
#ifndef H_gaf_div_by_gaf_f32x8
#define H_gaf_div_by_gaf_f32x8
static inline gaf_f32x8 gaf_div_by_gaf_f32x8(gaf_f32x8 a, float b) {
  const float r = 1 / b, size = __builtin_fabsf(b);
  return size > 0x1p-100f && size < 0x1p100f ? a * r : a / b;
}
#endif
#ifndef H_gaf_st_f32x8
#define H_gaf_st_f32x8
static inline void gaf_st_f32x8(float *p, gaf_f32x8 x) { *(gaf_f32x8u *)p = x; }
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
#ifndef H_gaf_barrier
#define H_gaf_barrier
#ifdef _OPENMP
#define GAF_BARRIER if (nt > 1) { _Pragma("omp barrier") }
#else
#define GAF_BARRIER
#endif
#endif
static int k0_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {
  int status = 0;
  (void)tid; (void)nt;
  char *const common = (char *)args->scratch;
  char *const privates = common + 0;
  const gaf_i64 private_bytes = 448;
  char *const mine = privates + tid * private_bytes;
  int turn = 0;
  (void)common; (void)mine; (void)turn;
  const float *__restrict b0 = (const float *)args->operands[0];
  float *__restrict b1 = (float *)args->operands[1];
  {
    const gaf_i64 t1n = (gaf_i64)((64 + 0) / 1);
    for (gaf_i64 t1 = t1n * tid / nt; t1 < t1n * (tid + 1) / nt; t1++) {
      const gaf_i64 t10 = t1;
      gaf_f32x8 a1_0_0 = gaf_bc_gaf_f32x8((-__builtin_inff()));
      gaf_f32x8 a1_0_1 = gaf_bc_gaf_f32x8((-__builtin_inff()));
      gaf_f32x8 a1_0_2 = gaf_bc_gaf_f32x8((-__builtin_inff()));
      gaf_f32x8 a1_0_3 = gaf_bc_gaf_f32x8((-__builtin_inff()));
      gaf_i64 j2 = 0;
      for (; j2 + 32 <= 100; j2 += 32) {
        const gaf_f32x8 v3 = gaf_ld_f32x8(b0 + ((100) * t10 + j2));
        a1_0_0 = (a1_0_0 != a1_0_0 ? a1_0_0 : gaf_max_f32x8(a1_0_0, v3));
        const gaf_f32x8 v4 = gaf_ld_f32x8(b0 + ((100) * t10 + (j2 + 8)));
        a1_0_1 = (a1_0_1 != a1_0_1 ? a1_0_1 : gaf_max_f32x8(a1_0_1, v4));
        const gaf_f32x8 v5 = gaf_ld_f32x8(b0 + ((100) * t10 + (j2 + 16)));
        a1_0_2 = (a1_0_2 != a1_0_2 ? a1_0_2 : gaf_max_f32x8(a1_0_2, v5));
        const gaf_f32x8 v6 = gaf_ld_f32x8(b0 + ((100) * t10 + (j2 + 24)));
        a1_0_3 = (a1_0_3 != a1_0_3 ? a1_0_3 : gaf_max_f32x8(a1_0_3, v6));
      }
      for (; j2 + 8 <= 100; j2 += 8) {
        const gaf_f32x8 v7 = gaf_ld_f32x8(b0 + ((100) * t10 + j2));
        a1_0_0 = (a1_0_0 != a1_0_0 ? a1_0_0 : gaf_max_f32x8(a1_0_0, v7));
      }
      if (j2 < 100) {
        const gaf_f32x8 v8 = gaf_ldn_f32x8(b0 + ((100) * t10 + j2), (int)(100 - j2));
        a1_0_0 = (a1_0_0 != a1_0_0 ? a1_0_0 : gaf_max_f32x8(a1_0_0, (gaf_live_gaf_i32x8((int)(100 - j2)) ? v8 : gaf_bc_gaf_f32x8((-__builtin_inff())))));
      }
      a1_0_0 = (a1_0_0 != a1_0_0 ? a1_0_0 : gaf_max_f32x8(a1_0_0, a1_0_2));
      a1_0_1 = (a1_0_1 != a1_0_1 ? a1_0_1 : gaf_max_f32x8(a1_0_1, a1_0_3));
      a1_0_0 = (a1_0_0 != a1_0_0 ? a1_0_0 : gaf_max_f32x8(a1_0_0, a1_0_1));
      float f1_0 = gaf_fold_maximum_f32x8m4(a1_0_0);
      const float v9 = f1_0;
      gaf_f32x8 a4_0_0 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a4_0_1 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a4_0_2 = gaf_bc_gaf_f32x8(0.0f);
      gaf_f32x8 a4_0_3 = gaf_bc_gaf_f32x8(0.0f);
      gaf_i64 j10 = 0;
      for (; j10 + 32 <= 100; j10 += 32) {
        const gaf_f32x8 v11 = gaf_ld_f32x8(b0 + ((100) * t10 + j10));
        const gaf_f32x8 v12 = v11 - gaf_bc_gaf_f32x8(v9);
        const gaf_f32x8 v13 = gaf_exp_f32x8(v12);
        a4_0_0 = a4_0_0 + v13;
        *(gaf_f32x8u *)(mine + 0 + (j10) * 4) = v13;
        const gaf_f32x8 v14 = gaf_ld_f32x8(b0 + ((100) * t10 + (j10 + 8)));
        const gaf_f32x8 v15 = v14 - gaf_bc_gaf_f32x8(v9);
        const gaf_f32x8 v16 = gaf_exp_f32x8(v15);
        a4_0_1 = a4_0_1 + v16;
        *(gaf_f32x8u *)(mine + 0 + ((j10 + 8)) * 4) = v16;
        const gaf_f32x8 v17 = gaf_ld_f32x8(b0 + ((100) * t10 + (j10 + 16)));
        const gaf_f32x8 v18 = v17 - gaf_bc_gaf_f32x8(v9);
        const gaf_f32x8 v19 = gaf_exp_f32x8(v18);
        a4_0_2 = a4_0_2 + v19;
        *(gaf_f32x8u *)(mine + 0 + ((j10 + 16)) * 4) = v19;
        const gaf_f32x8 v20 = gaf_ld_f32x8(b0 + ((100) * t10 + (j10 + 24)));
        const gaf_f32x8 v21 = v20 - gaf_bc_gaf_f32x8(v9);
        const gaf_f32x8 v22 = gaf_exp_f32x8(v21);
        a4_0_3 = a4_0_3 + v22;
        *(gaf_f32x8u *)(mine + 0 + ((j10 + 24)) * 4) = v22;
      }
      for (; j10 + 8 <= 100; j10 += 8) {
        const gaf_f32x8 v23 = gaf_ld_f32x8(b0 + ((100) * t10 + j10));
        const gaf_f32x8 v24 = v23 - gaf_bc_gaf_f32x8(v9);
        const gaf_f32x8 v25 = gaf_exp_f32x8(v24);
        a4_0_0 = a4_0_0 + v25;
        *(gaf_f32x8u *)(mine + 0 + (j10) * 4) = v25;
      }
      if (j10 < 100) {
        const gaf_f32x8 v26 = gaf_ldn_f32x8(b0 + ((100) * t10 + j10), (int)(100 - j10));
        const gaf_f32x8 v27 = v26 - gaf_bc_gaf_f32x8(v9);
        const gaf_f32x8 v28 = gaf_exp_f32x8(v27);
        a4_0_0 = a4_0_0 + (gaf_live_gaf_i32x8((int)(100 - j10)) ? v28 : gaf_bc_gaf_f32x8(0.0f));
        *(gaf_f32x8u *)(mine + 0 + (j10) * 4) = v28;
      }
      a4_0_0 = a4_0_0 + a4_0_2;
      a4_0_1 = a4_0_1 + a4_0_3;
      a4_0_0 = a4_0_0 + a4_0_1;
      float f4_0 = gaf_fold_add_f32x8m4(a4_0_0);
      const float v29 = f4_0;
      gaf_i64 j30 = 0;
      for (; j30 + 32 <= 100; j30 += 32) {
        const gaf_f32x8u k31 = *(const gaf_f32x8u *)(mine + 0 + (j30) * 4);
        const gaf_f32x8 v32 = gaf_div_by_gaf_f32x8(k31, v29);
        gaf_st_f32x8(b1 + ((100) * t10 + j30), v32);
        const gaf_f32x8u k33 = *(const gaf_f32x8u *)(mine + 0 + ((j30 + 8)) * 4);
        const gaf_f32x8 v34 = gaf_div_by_gaf_f32x8(k33, v29);
        gaf_st_f32x8(b1 + ((100) * t10 + (j30 + 8)), v34);
        const gaf_f32x8u k35 = *(const gaf_f32x8u *)(mine + 0 + ((j30 + 16)) * 4);
        const gaf_f32x8 v36 = gaf_div_by_gaf_f32x8(k35, v29);
        gaf_st_f32x8(b1 + ((100) * t10 + (j30 + 16)), v36);
        const gaf_f32x8u k37 = *(const gaf_f32x8u *)(mine + 0 + ((j30 + 24)) * 4);
        const gaf_f32x8 v38 = gaf_div_by_gaf_f32x8(k37, v29);
        gaf_st_f32x8(b1 + ((100) * t10 + (j30 + 24)), v38);
      }
      for (; j30 + 8 <= 100; j30 += 8) {
        const gaf_f32x8u k39 = *(const gaf_f32x8u *)(mine + 0 + (j30) * 4);
        const gaf_f32x8 v40 = gaf_div_by_gaf_f32x8(k39, v29);
        gaf_st_f32x8(b1 + ((100) * t10 + j30), v40);
      }
      if (j30 < 100) {
        const gaf_f32x8u k41 = *(const gaf_f32x8u *)(mine + 0 + (j30) * 4);
        const gaf_f32x8 v42 = gaf_div_by_gaf_f32x8(k41, v29);
        gaf_stn_f32x8(b1 + ((100) * t10 + j30), v42, (int)(100 - j30));
      }
    }
  }
  return status;
}
extern "C" int k0(const gaf_kernel_args *args) { return k0_body(args, 0, 1); }
