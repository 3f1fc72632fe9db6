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
#ifndef H_gaf_fma_gaf_f32x8
#define H_gaf_fma_gaf_f32x8
static inline __attribute__((always_inline)) void gaf_fma_gaf_f32x8(gaf_f32x8 &c, gaf_f32x8 a, gaf_f32x8 b) {
#ifdef __FMA__
  asm("vfmadd231ps %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));
#else
  c += a * b;
#endif
}
#endif
#ifndef H_gaf_ld_f32x8
#define H_gaf_ld_f32x8
static inline gaf_f32x8 gaf_ld_f32x8(const float *p) { return *(const gaf_f32x8u *)p; }
#endif
#ifndef H_gaf_transpose_gaf_f32x8
#define H_gaf_transpose_gaf_f32x8
static inline void gaf_transpose_gaf_f32x8(gaf_f32x8 *t) {
  gaf_f32x8 a0 = t[0];
  gaf_f32x8 a1 = t[1];
  gaf_f32x8 a2 = t[2];
  gaf_f32x8 a3 = t[3];
  gaf_f32x8 a4 = t[4];
  gaf_f32x8 a5 = t[5];
  gaf_f32x8 a6 = t[6];
  gaf_f32x8 a7 = t[7];
  gaf_f32x8 x;
  x = __builtin_shufflevector(a0, a1, 0, 8, 2, 10, 4, 12, 6, 14);
  a1 = __builtin_shufflevector(a0, a1, 1, 9, 3, 11, 5, 13, 7, 15);
  a0 = x;
  x = __builtin_shufflevector(a2, a3, 0, 8, 2, 10, 4, 12, 6, 14);
  a3 = __builtin_shufflevector(a2, a3, 1, 9, 3, 11, 5, 13, 7, 15);
  a2 = x;
  x = __builtin_shufflevector(a4, a5, 0, 8, 2, 10, 4, 12, 6, 14);
  a5 = __builtin_shufflevector(a4, a5, 1, 9, 3, 11, 5, 13, 7, 15);
  a4 = x;
  x = __builtin_shufflevector(a6, a7, 0, 8, 2, 10, 4, 12, 6, 14);
  a7 = __builtin_shufflevector(a6, a7, 1, 9, 3, 11, 5, 13, 7, 15);
  a6 = x;
  x = __builtin_shufflevector(a0, a2, 0, 1, 8, 9, 4, 5, 12, 13);
  a2 = __builtin_shufflevector(a0, a2, 2, 3, 10, 11, 6, 7, 14, 15);
  a0 = x;
  x = __builtin_shufflevector(a1, a3, 0, 1, 8, 9, 4, 5, 12, 13);
  a3 = __builtin_shufflevector(a1, a3, 2, 3, 10, 11, 6, 7, 14, 15);
  a1 = x;
  x = __builtin_shufflevector(a4, a6, 0, 1, 8, 9, 4, 5, 12, 13);
  a6 = __builtin_shufflevector(a4, a6, 2, 3, 10, 11, 6, 7, 14, 15);
  a4 = x;
  x = __builtin_shufflevector(a5, a7, 0, 1, 8, 9, 4, 5, 12, 13);
  a7 = __builtin_shufflevector(a5, a7, 2, 3, 10, 11, 6, 7, 14, 15);
  a5 = x;
  x = __builtin_shufflevector(a0, a4, 0, 1, 2, 3, 8, 9, 10, 11);
  a4 = __builtin_shufflevector(a0, a4, 4, 5, 6, 7, 12, 13, 14, 15);
  a0 = x;
  x = __builtin_shufflevector(a1, a5, 0, 1, 2, 3, 8, 9, 10, 11);
  a5 = __builtin_shufflevector(a1, a5, 4, 5, 6, 7, 12, 13, 14, 15);
  a1 = x;
  x = __builtin_shufflevector(a2, a6, 0, 1, 2, 3, 8, 9, 10, 11);
  a6 = __builtin_shufflevector(a2, a6, 4, 5, 6, 7, 12, 13, 14, 15);
  a2 = x;
  x = __builtin_shufflevector(a3, a7, 0, 1, 2, 3, 8, 9, 10, 11);
  a7 = __builtin_shufflevector(a3, a7, 4, 5, 6, 7, 12, 13, 14, 15);
  a3 = x;
  t[0] = a0;
  t[1] = a1;
  t[2] = a2;
  t[3] = a3;
  t[4] = a4;
  t[5] = a5;
  t[6] = a6;
  t[7] = a7;
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
#ifndef H_gaf_i64x8
#define H_gaf_i64x8
typedef gaf_i64 gaf_i64x8 __attribute__((vector_size(64)));
typedef gaf_i64 gaf_i64x8u __attribute__((vector_size(64), aligned(8), may_alias));
#endif
#ifndef H_gaf_i32x8
#define H_gaf_i32x8
typedef int gaf_i32x8 __attribute__((vector_size(32)));
typedef int gaf_i32x8u __attribute__((vector_size(32), aligned(4), may_alias));
#endif
#ifndef H_gaf_clamp_i32
#define H_gaf_clamp_i32
static inline int gaf_clamp_i32(gaf_i64 x) { return x < -0x7fffffffLL ? -0x7fffffff : x > 0x7fffffffLL ? 0x7fffffff : (int)x; }
#endif
#ifndef H_gaf_bc_gaf_f32x8
#define H_gaf_bc_gaf_f32x8
static inline gaf_f32x8 gaf_bc_gaf_f32x8(float s) { return s - (gaf_f32x8){}; }
#endif
#ifndef H_gaf_live_gaf_i32x8
#define H_gaf_live_gaf_i32x8
static inline gaf_i32x8 gaf_live_gaf_i32x8(int n) { return (gaf_i32x8){0, 1, 2, 3, 4, 5, 6, 7} < (int)n; }
#endif
#ifndef H_gaf_lane_maximum_gaf_f32x8
#define H_gaf_lane_maximum_gaf_f32x8
static inline float gaf_lane_maximum_gaf_f32x8(gaf_f32x8 x) {
  x = gaf_max_f32x8(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
  x = gaf_max_f32x8(x, __builtin_shufflevector(x, x, 2, 3, 4, 5, 6, 7, 0, 1));
  x = gaf_max_f32x8(x, __builtin_shufflevector(x, x, 1, 2, 3, 4, 5, 6, 7, 0));
  return x[0];
}
#endif
#ifndef H_gaf_f32x4
#define H_gaf_f32x4
typedef float gaf_f32x4 __attribute__((vector_size(16)));
typedef float gaf_f32x4u __attribute__((vector_size(16), aligned(4), may_alias));
#endif
#ifndef H_gaf_i32x4
#define H_gaf_i32x4
typedef int gaf_i32x4 __attribute__((vector_size(16)));
typedef int gaf_i32x4u __attribute__((vector_size(16), aligned(4), may_alias));
#endif
#ifndef H_gaf_scale_f32x4
#define H_gaf_scale_f32x4
static inline gaf_f32x4 gaf_scale_f32x4(gaf_f32x4 p, gaf_f32x4 t) {
#if defined(__AVX512F__) && 4 == 16
  return __builtin_ia32_scalefps512_mask(p, t - 12582912.0f, p, -1, 4);
#else
  /* the low bits of t are k; two factors, as one does not reach the least subnormal */
  const gaf_i32x4 n = (gaf_i32x4)t, h = ((n >> 1) << 23) + 0x3f800000;
  return p * (gaf_f32x4)h * (gaf_f32x4)((n << 23) - h + 0x7f000000);
#endif
}
#endif
#ifndef H_gaf_min_f32x4
#define H_gaf_min_f32x4
static inline gaf_f32x4 gaf_min_f32x4(gaf_f32x4 a, gaf_f32x4 b) {
#if defined(__SSE2__) && !defined(__clang__)
  return __builtin_ia32_minps(a, b);
#else
  return a < b ? a : b;
#endif
}
#endif
#ifndef H_gaf_exp_f32x4
#define H_gaf_exp_f32x4
static inline gaf_f32x4 gaf_exp_f32x4(gaf_f32x4 x) {
  const gaf_f32x4 high = 89.0f + (gaf_f32x4){};
  const gaf_i32x4 gone = x < -104.0f;
  x = gone ? (gaf_f32x4){} : gaf_min_f32x4(high, x); /* a NaN stays */
  const gaf_f32x4 t = x * 1.44269504088896341f + 12582912.0f, k = t - 12582912.0f;
  const gaf_f32x4 r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  const gaf_f32x4 r2 = r * r;
  gaf_f32x4 p = (0.0013818938750773668f * r + 0.008368703536689281f) * r2 +
        (0.04166828840970993f * r + 0.1666652113199234f);
  p = (p * r + 0.4999999403953552f) * r2 + r;
  return gone ? (gaf_f32x4){} : gaf_scale_f32x4(p + 1.0f, t);
}
#endif
#ifndef H_gaf_exp_f32
#define H_gaf_exp_f32
static inline float gaf_exp_f32(float x) { return gaf_exp_f32x4(gaf_f32x4{x, x, x, x})[0]; }
#endif
#ifndef H_gaf_exp_falling_f32x8
#define H_gaf_exp_falling_f32x8
static inline gaf_f32x8 gaf_exp_falling_f32x8(gaf_f32x8 x) {
  const gaf_f32x8 low = -88.0f + (gaf_f32x8){};
  x = gaf_max_f32x8(low, x); /* there 2^k is 0; a NaN stays */
  const gaf_f32x8 t = x * 1.44269504088896341f + 12582912.0f, k = t - 12582912.0f;
  const gaf_f32x8 r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
  const gaf_f32x8 r2 = r * r;
  gaf_f32x8 p = (0.0013818938750773668f * r + 0.008368703536689281f) * r2 +
        (0.04166828840970993f * r + 0.1666652113199234f);
  p = (p * r + 0.4999999403953552f) * r2 + r;
  const gaf_f32x8 s = (gaf_f32x8)(((gaf_i32x8)t << 23) + 0x3f800000);
  return p * s + s;
}
#endif
#ifndef H_gaf_lane_total_gaf_f32x8
#define H_gaf_lane_total_gaf_f32x8
static inline float gaf_lane_total_gaf_f32x8(gaf_f32x8 x) {
  x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
  x += __builtin_shufflevector(x, x, 2, 3, 4, 5, 6, 7, 0, 1);
  x += __builtin_shufflevector(x, x, 1, 2, 3, 4, 5, 6, 7, 0);
  return x[0];
}
#endif
#ifndef H_gaf_st_f32x8
#define H_gaf_st_f32x8
static inline void gaf_st_f32x8(float *p, gaf_f32x8 x) { *(gaf_f32x8u *)p = x; }
#endif
static __attribute__((noinline)) void k0_qk(const float *__restrict A, const float *__restrict B, float *__restrict C, gaf_i64 k, int first) {
  gaf_f32x8 c0_0, c1_0, c2_0, c3_0, c4_0, c5_0, c6_0, c7_0;
  if (first) {
    c0_0 = (gaf_f32x8){};
    c1_0 = (gaf_f32x8){};
    c2_0 = (gaf_f32x8){};
    c3_0 = (gaf_f32x8){};
    c4_0 = (gaf_f32x8){};
    c5_0 = (gaf_f32x8){};
    c6_0 = (gaf_f32x8){};
    c7_0 = (gaf_f32x8){};
  } else {
    c0_0 = *(const gaf_f32x8 *)(C + 0);
    c1_0 = *(const gaf_f32x8 *)(C + 16);
    c2_0 = *(const gaf_f32x8 *)(C + 32);
    c3_0 = *(const gaf_f32x8 *)(C + 48);
    c4_0 = *(const gaf_f32x8 *)(C + 64);
    c5_0 = *(const gaf_f32x8 *)(C + 80);
    c6_0 = *(const gaf_f32x8 *)(C + 96);
    c7_0 = *(const gaf_f32x8 *)(C + 112);
  }
  for (; k >= 4; k -= 4) {
    {
      gaf_f32x8 b0 = *(const gaf_f32x8 *)(B + 0);
      { const gaf_f32x8 a = A[0] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[8] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[16] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[24] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[32] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[40] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[48] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[56] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    {
      gaf_f32x8 b0 = *(const gaf_f32x8 *)(B + 8);
      { const gaf_f32x8 a = A[1] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[9] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[17] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[25] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[33] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[41] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[49] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[57] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    {
      gaf_f32x8 b0 = *(const gaf_f32x8 *)(B + 16);
      { const gaf_f32x8 a = A[2] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[10] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[18] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[26] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[34] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[42] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[50] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[58] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    {
      gaf_f32x8 b0 = *(const gaf_f32x8 *)(B + 24);
      { const gaf_f32x8 a = A[3] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[11] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[19] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[27] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[35] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[43] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[51] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[59] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    A += 4; B += 32;
  }
  for (; k > 0; --k) {
    {
      gaf_f32x8 b0 = *(const gaf_f32x8 *)(B + 0);
      { const gaf_f32x8 a = A[0] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[8] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[16] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[24] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[32] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[40] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[48] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[56] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    A += 1; B += 8;
  }
  *(gaf_f32x8 *)(C + 0) = c0_0;
  *(gaf_f32x8 *)(C + 16) = c1_0;
  *(gaf_f32x8 *)(C + 32) = c2_0;
  *(gaf_f32x8 *)(C + 48) = c3_0;
  *(gaf_f32x8 *)(C + 64) = c4_0;
  *(gaf_f32x8 *)(C + 80) = c5_0;
  *(gaf_f32x8 *)(C + 96) = c6_0;
  *(gaf_f32x8 *)(C + 112) = c7_0;
}
static __attribute__((noinline)) void k0_pv(const float *__restrict A, const float *__restrict B, float *__restrict C, gaf_i64 k, int first) {
  gaf_f32x8 c0_0, c1_0, c2_0, c3_0, c4_0, c5_0, c6_0, c7_0;
  if (first) {
    c0_0 = (gaf_f32x8){};
    c1_0 = (gaf_f32x8){};
    c2_0 = (gaf_f32x8){};
    c3_0 = (gaf_f32x8){};
    c4_0 = (gaf_f32x8){};
    c5_0 = (gaf_f32x8){};
    c6_0 = (gaf_f32x8){};
    c7_0 = (gaf_f32x8){};
  } else {
    c0_0 = *(const gaf_f32x8 *)(C + 0);
    c1_0 = *(const gaf_f32x8 *)(C + 8);
    c2_0 = *(const gaf_f32x8 *)(C + 16);
    c3_0 = *(const gaf_f32x8 *)(C + 24);
    c4_0 = *(const gaf_f32x8 *)(C + 32);
    c5_0 = *(const gaf_f32x8 *)(C + 40);
    c6_0 = *(const gaf_f32x8 *)(C + 48);
    c7_0 = *(const gaf_f32x8 *)(C + 56);
  }
  for (; k >= 4; k -= 4) {
    {
      gaf_f32x8 b0 = *(const gaf_f32x8u *)(B + 0);
      { const gaf_f32x8 a = A[0] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[16] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[32] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[48] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[64] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[80] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[96] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[112] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    {
      gaf_f32x8 b0 = *(const gaf_f32x8u *)(B + 8);
      { const gaf_f32x8 a = A[1] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[17] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[33] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[49] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[65] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[81] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[97] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[113] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    {
      gaf_f32x8 b0 = *(const gaf_f32x8u *)(B + 16);
      { const gaf_f32x8 a = A[2] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[18] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[34] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[50] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[66] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[82] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[98] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[114] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    {
      gaf_f32x8 b0 = *(const gaf_f32x8u *)(B + 24);
      { const gaf_f32x8 a = A[3] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[19] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[35] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[51] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[67] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[83] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[99] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[115] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    A += 4; B += 32;
  }
  for (; k > 0; --k) {
    {
      gaf_f32x8 b0 = *(const gaf_f32x8u *)(B + 0);
      { const gaf_f32x8 a = A[0] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c0_0, a, b0);
      }
      { const gaf_f32x8 a = A[16] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c1_0, a, b0);
      }
      { const gaf_f32x8 a = A[32] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c2_0, a, b0);
      }
      { const gaf_f32x8 a = A[48] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c3_0, a, b0);
      }
      { const gaf_f32x8 a = A[64] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c4_0, a, b0);
      }
      { const gaf_f32x8 a = A[80] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c5_0, a, b0);
      }
      { const gaf_f32x8 a = A[96] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c6_0, a, b0);
      }
      { const gaf_f32x8 a = A[112] - (gaf_f32x8){};
        gaf_fma_gaf_f32x8(c7_0, a, b0);
      }
    }
    A += 1; B += 8;
  }
  *(gaf_f32x8 *)(C + 0) = c0_0;
  *(gaf_f32x8 *)(C + 8) = c1_0;
  *(gaf_f32x8 *)(C + 16) = c2_0;
  *(gaf_f32x8 *)(C + 24) = c3_0;
  *(gaf_f32x8 *)(C + 32) = c4_0;
  *(gaf_f32x8 *)(C + 40) = c5_0;
  *(gaf_f32x8 *)(C + 48) = c6_0;
  *(gaf_f32x8 *)(C + 56) = c7_0;
}
static __attribute__((noinline)) void k0_query(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 m0, gaf_i64 rows, float *dst) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  for (gaf_i64 r = 0; r < rows; ++r) {
    const gaf_i64 m = m0 + r;
    (void)m;
    const gaf_i64 i1 = m; (void)i1;
    {
      gaf_i64 c = 0;
      for (; c + 8 <= 8; c += 8) {
        const gaf_f32x8 v1 = gaf_ld_f32x8(b0 + ((128) * i0 + (8) * i1 + c));
        __builtin_prefetch(b0 + ((128) * i0 + (8) * i1 + c) + 128ll, 0, 2);
        *(gaf_f32x8u *)(dst + r * 8 + 0 + c) = v1;
      }
    }
  }
  for (gaf_i64 r = rows; r % 8 != 0; ++r)
    for (gaf_i64 k = 0; k < 8; ++k) dst[r * 8 + k] = 0;
}
static __attribute__((noinline)) void k0_key(const gaf_kernel_args *args, int &status, gaf_i64 b, float *dst) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  for (gaf_i64 t0 = 0; t0 < 16; t0 += 8) {
    const gaf_i64 rest = 16 - t0, cols = rest < 8 ? rest : 8;
    float *panel = dst + t0 * 8ll;
    for (gaf_i64 j0 = 0; j0 < 8; j0 += 8) {
      const gaf_i64 left = cols - j0; const int count = left < 8 ? (int)left
          : 8;
      {
        gaf_i64 c = 0;
        for (; c + 8 <= 8; c += 8) {
          gaf_f32x8 t[8] = {};
          for (int i = 0; i < count; ++i) {
            const gaf_f32x8 v2 = gaf_ld_f32x8(b1 + ((128) * i0 + (8) * (t0 + j0 + i) + c));
            t[i] = v2;
            __builtin_prefetch(b1 + ((128) * i0 + (8) * (t0 + j0 + i) + c) + 64ll, 0, 2);
          }
          gaf_transpose_gaf_f32x8(t);
          for (int j = 0; j < 8; ++j) *(gaf_f32x8u *)(panel + (0 + c + j) * 8 + j0) = t[j];
        }
      }
    }
  }
}
static __attribute__((noinline)) const float * k0_value_at(const gaf_kernel_args *args, int &status, gaf_i64 b) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  return b2 + ((128) * i0);
}
static __attribute__((noinline)) void k0_finite(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 &low, gaf_i64 &high) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  low = 16;
  high = 0;
  for (gaf_i64 r0 = 0; r0 < 16; ++r0) {
    gaf_f32x8 odd = {};
    {
      gaf_i64 c = 0;
      for (; c + 8 <= 8; c += 8) {
        const gaf_f32x8 v3 = gaf_ld_f32x8(b2 + ((128) * i0 + c + (8) * r0));
        odd += v3 * 0;
      }
    }
    int found = 0;
    for (int l = 0; l < 8; ++l) found |= odd[l] != 0;
    if (!found) continue;
    if (r0 < low) low = r0;
    high = r0 + 1;
  }
}
static __attribute__((noinline)) void k0_sight(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 m0, gaf_i64 rows, gaf_i64 &low, gaf_i64 &high) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  for (gaf_i64 r = 0; r < rows; ++r) {
    const gaf_i64 m = m0 + r;
    (void)m;
    const gaf_i64 i1 = m; (void)i1;
    gaf_i64 from = 0, to = 16;
    if ((i1 + 1) < to) to = (i1 + 1);
    if (from >= to) continue;
    if (from < low) low = from;
    if (to > high) high = to;
  }
  if (low >= high) low = 0, high = 1;
}
static __attribute__((noinline)) void k0_softmax(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 m0, gaf_i64 rows, gaf_i64 t0, gaf_i64 cols, float *scores, float *sums, float *tops, float *totals, int first) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  for (gaf_i64 r = 0; r < rows; ++r) {
    const gaf_i64 m = m0 + r;
    (void)m;
    const gaf_i64 i1 = m; (void)i1;
    float *const at = scores + r * 16;
    gaf_f32x8 high = (-__builtin_inff()) - (gaf_f32x8){};
    const gaf_i64 v6 = (i1);
    {
      gaf_i64 c = 0;
      for (; c + 8 <= cols; c += 8) {
        const gaf_f32x8 product = *(const gaf_f32x8u *)(at + c);
        gaf_i64x8 g4;
        for (int l = 0; l < 8; l++) g4[l] = (((t0 + c) + l));
        const gaf_i64x8 v5 = g4;
        const gaf_i32x8 v7 = __builtin_convertvector(((gaf_i32x8){0, 1, 2, 3, 4, 5, 6, 7} + (int)((t0 + c))) <= (gaf_i32x8{} + gaf_clamp_i32(v6)), gaf_i32x8);
        const gaf_f32x8 v8 = product * gaf_bc_gaf_f32x8(0.25f);
        const gaf_f32x8 v9 = (v7 ? v8 : gaf_bc_gaf_f32x8((-__builtin_inff())));
        const gaf_f32x8 score = v9;
        *(gaf_f32x8u *)(at + c) = score;
        high = gaf_max_f32x8(score, high); /* a NaN is left to the weights */
      }
      if (c < cols) {
        const int part = (int)(cols - c);
        const gaf_f32x8 product = *(const gaf_f32x8u *)(at + c);
        gaf_i64x8 g10;
        for (int l = 0; l < 8; l++) g10[l] = (((t0 + c) + l));
        const gaf_i64x8 v11 = g10;
        const gaf_i32x8 v12 = __builtin_convertvector(((gaf_i32x8){0, 1, 2, 3, 4, 5, 6, 7} + (int)((t0 + c))) <= (gaf_i32x8{} + gaf_clamp_i32(v6)), gaf_i32x8);
        const gaf_f32x8 v13 = product * gaf_bc_gaf_f32x8(0.25f);
        const gaf_f32x8 v14 = (v12 ? v13 : gaf_bc_gaf_f32x8((-__builtin_inff())));
        const gaf_f32x8 score = gaf_live_gaf_i32x8(part) != 0 ? v14 : (-__builtin_inff()) - (gaf_f32x8){};
        *(gaf_f32x8u *)(at + c) = score;
        high = gaf_max_f32x8(score, high); /* a NaN is left to the weights */
      }
    }
    const float before = first ? (-__builtin_inff()) : tops[r], found = gaf_lane_maximum_gaf_f32x8(high);
    const float now = found > before ? found : before;
    const float base = now == (-__builtin_inff()) ? 0 : now;
    tops[r] = now;
    if (!first && before != now) {
      const float shrink = gaf_exp_f32(before - base);
      totals[r] *= shrink;
      float *const sum = sums + r * 8;
      for (gaf_i64 c = 0; c < 8; c += 8)
        *(gaf_f32x8 *)(sum + c) *= shrink;
    }
    gaf_f32x8 total = {};
    for (gaf_i64 c = 0; c < cols; c += 8) {
      gaf_f32x8 *const place = (gaf_f32x8 *)(at + c);
      const gaf_f32x8 weight = gaf_exp_falling_f32x8(*place - base);
      *place = weight;
      total += weight;
    }
    totals[r] = (first ? 0 : totals[r]) + gaf_lane_total_gaf_f32x8(total);
  }
}
static __attribute__((noinline)) void k0_after(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 m0, gaf_i64 rows, const float *sums, const float *totals) {
  const float *__restrict b0 = (const float *)args->operands[0];
  const float *__restrict b1 = (const float *)args->operands[1];
  const float *__restrict b2 = (const float *)args->operands[2];
  float *__restrict b3 = (float *)args->operands[3];
  (void)status;
  (void)b;
  const gaf_i64 i0 = b; (void)i0;
  for (gaf_i64 r = 0; r < rows; ++r) {
    const gaf_i64 m = m0 + r;
    (void)m;
    const gaf_i64 i1 = m; (void)i1;
    const float factor = totals[r] == 0 ? 1 : 1 / totals[r];
    {
      gaf_i64 c = 0;
      for (; c + 8 <= 8; c += 8) {
        const gaf_f32x8 result = *(const gaf_f32x8 *)(sums + r * 8 + c) * factor;
        gaf_st_f32x8(b3 + ((128) * i0 + (8) * i1 + c), result);
      }
    }
  }
}
static void k0_keys(const gaf_kernel_args *args, int &status, gaf_i64 b, gaf_i64 m0,
    gaf_i64 rows, gaf_i64 from, gaf_i64 to, const float *query, const float *key,
    const float *value, float *scores, float *sums, float *tops, float *totals) {
  if (from >= to) {
    for (gaf_i64 r = 0; r < rows; ++r) tops[r] = (-__builtin_inff()), totals[r] = 0;
    for (gaf_i64 c = 0; c < rows * 8; ++c) sums[c] = 0;
  }
  for (gaf_i64 t0 = from; t0 < to; t0 += 16) {
    const gaf_i64 cols = to - t0 < 16 ? to - t0 : 16;
    const int first = t0 == from;
    for (gaf_i64 p = 0; p < cols; p += 8) {
      const float *const panel = key + (t0 + p) * 8ll;
      for (gaf_i64 r = 0; r < rows; r += 8)
        k0_qk(query + r * 8, panel, scores + r * 16 + p, 8, 1);
    }
    k0_softmax(args, status, b, m0, rows, t0, cols, scores, sums, tops, totals, first);
    for (gaf_i64 e = 0; e < 8; e += 8)
      for (gaf_i64 r = 0; r < rows; r += 8)
        k0_pv(scores + r * 16, value + e + t0 * 8ll, sums + r * 8 + e, cols, first);
  }
}
static void k0_share(const gaf_kernel_args *args, int &status, float *shared, float *own,
    gaf_i64 tid, gaf_i64 nt) {
  float *const query = own + 0; (void)query;
  float *const scores = own + 128; (void)scores;
  float *const tops = own + 384; (void)tops;
  float *const totals = own + 400; (void)totals;
  float *const sums = own + 416; (void)sums;
  float *const own_key = own + 544; (void)own_key;
  float *const own_value = own + 672; (void)own_value;
  const float *key = own_key;
  const float *value = nullptr;
  gaf_i64 head = -1, first_odd = 0, last_odd = 0;
  (void)first_odd; (void)last_odd; (void)shared;
  for (gaf_i64 unit = 2ll * tid / nt; unit < 2ll * (tid + 1) / nt; ++unit) {
    const gaf_i64 b = unit / 1, block = unit % 1 / 1;
    const gaf_i64 m0 = block * 16;
    const gaf_i64 rows = 16 - m0 < 16 ? 16 - m0 : 16;
    if (b != head) {
      k0_key(args, status, b, own_key);
      value = k0_value_at(args, status, b);
      k0_finite(args, status, b, first_odd, last_odd);
      head = b;
    }
    k0_query(args, status, b, m0, rows, query);
    gaf_i64 low = first_odd, end = last_odd;
    k0_sight(args, status, b, m0, rows, low, end);
    const gaf_i64 begin = low / 8 * 8;
    k0_keys(args, status, b, m0, rows, begin, end, query, key, value, scores, sums, tops, totals);
    k0_after(args, status, b, m0, rows, sums, totals);
  }
}
static int k0_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {
  int status = 0;
  float *const shared = (float *)args->scratch;
  float *const own = (float *)((char *)(shared + 0ll) + tid * 2688ll);
  k0_share(args, status, shared, own, tid, nt);
  return status;
}
extern "C" int k0(const gaf_kernel_args *args) { return k0_body(args, 0, 1); }
