"""fp32 vector math as text: exp, log and their kin, tanh, erf, sigmoid, sin, cos.

At most 2 ulp over the whole range, NaN, infinities, subnormals and signed zeros included.
Coefficients: tests/codegen/vecmath_fit.py. `F` and `I` stand for the float and int vector types,
`D` and `L` for the double and 64-bit ones, `@name` for another function at the same lanes.

What vanishes is told by a comparison and not by a product that underflows: on Intel cores an
instruction with a subnormal operand or result takes some 150 cycles, and masks are full of -inf.

Range reduction by two constants whose first has few bits (Cody and Waite 1980), so that `k * HI` is
exact and it does not matter whether the compiler contracts `x - k * HI` into one rounding.
"""

from __future__ import annotations

LN2_HI, LN2_LO = "0.693359375f", "-2.12194440e-4f"
MAGIC = "12582912.0f"  # 1.5·2^23: adding it rounds to an integer in the low bits
_MAGIC_64 = "12582976.0f"  # and this one leaves that integer plus 64 in them


def _reduce(magic: str) -> str:
    """x = k·ln 2 + r, with k in the low bits of t."""
    return f"""\
  const F t = x * 1.44269504088896341f + {magic}, k = t - {magic};
  const F r = (x - k * {LN2_HI}) - k * {LN2_LO};"""


_REDUCE = _reduce(MAGIC)

# Polynomials go in pairs (Estrin 1960): half the latency of one chain, which a scheduler of a few
# dozen entries cannot hide by running iterations side by side.
_EXP_POLY = """\
  const F r2 = r * r;
  F p = (0.0013818938750773668f * r + 0.008368703536689281f) * r2 +
        (0.04166828840970993f * r + 0.1666652113199234f);
  p = (p * r + 0.4999999403953552f) * r2 + r;"""

_EXPM1_POLY = """\
  const F r2 = r * r;
  F p = (0.0013868435053154826f * r + 0.008366432040929794f) * r2 +
        (0.04166746139526367f * r + 0.1666654497385025f);
  p = (p * r + 0.4999999701976776f) * r2 + r;"""

F32_TEXT: dict[str, str] = {
    # p · 2^k, rounded once, for t = k + MAGIC and any integral k; p may be NaN
    "scale": f"""\
static inline F NAME(F p, F t) {{
#if defined(__AVX512F__) && LANES == 16
  return __builtin_ia32_scalefps512_mask(p, t - {MAGIC}, p, -1, 4);
#else
  /* the low bits of t are k; two factors, as one does not reach the least subnormal */
  const I n = (I)t, h = ((n >> 1) << 23) + 0x3f800000;
  return p * (F)h * (F)((n << 23) - h + 0x7f000000);
#endif
}}""",
    # n / s for s in [1, 2^64], an ulp off at most; a division of 16 lanes takes 16 cycles on Intel
    "fraction": """\
static inline F NAME(F n, F s) {
#if defined(__AVX512F__) && LANES == 16
  F r = __builtin_ia32_rcp14ps512_mask(s, s, -1);
  r = r + r * (1.0f - s * r);
  const F q = n * r;
  return q + r * (n - q * s);
#else
  return n / s;
#endif
}""",
    "exp": f"""\
static inline F NAME(F x) {{
  const F high = 89.0f + (F){{}};
  const I gone = x < -104.0f;
  x = gone ? (F){{}} : @min(high, x); /* a NaN stays */
{_REDUCE}
{_EXP_POLY}
  return gone ? (F){{}} : @scale(p + 1.0f, t);
}}""",
    # |x| < 80: the exponent cannot overflow
    "exp_mid": f"""\
static inline F NAME(F x) {{
{_REDUCE}
{_EXP_POLY}
  return (F)((I)(p + 1.0f) + ((I)t << 23));
}}""",
    # x <= 0, as in a softmax; what would be below the smallest normal number is 0
    "exp_falling": f"""\
static inline F NAME(F x) {{
  const F low = -88.0f + (F){{}};
  x = @max(low, x); /* there 2^k is 0; a NaN stays */
{_REDUCE}
{_EXP_POLY}
  const F s = (F)(((I)t << 23) + 0x3f800000);
  return p * s + s;
}}""",
    "exp2": f"""\
static inline F NAME(F x) {{
  const F high = 129.0f + (F){{}};
  const I gone = x < -151.0f;
  x = gone ? (F){{}} : @min(high, x);
  const F t = x + {MAGIC}, k = t - {MAGIC};
  const F r = (x - k) * 0.693147180559945309f;
{_EXP_POLY}
  return gone ? (F){{}} : @scale(p + 1.0f, t);
}}""",
    # 2^k·(e^r - 1) + (2^k - 1): exact where the two parts cancel
    "expm1": f"""\
static inline F NAME(F a) {{
  const F low = -20.0f + (F){{}}, high = 89.0f + (F){{}};
  const F x = @min(high, @max(low, a));
{_REDUCE}
{_EXPM1_POLY}
  const F one = 1.0f + (F){{}}, half = @scale(one, t - 1.0f);
  const F y = 2.0f * (half * p + (half - 0.5f));
  return a == 0 ? a : y;
}}""",
    # x = 2^e·m with m in [sqrt(1/2), sqrt(2)); gives e and log(m) = f + y
    "log_split": """\
static inline void NAME(F x, F *e, F *f, F *y) {
  const I small = x < 0x1p-126f;
  const F scaled = small ? x * 0x1p23f : x;
  const I b = (I)scaled - 0x3f3504f3;
  *e = __builtin_convertvector((b >> 23) - (small & 23), F);
  const F m = (F)((b & 0x7fffff) + 0x3f3504f3);
  const F g = m - 1.0f, s = g * g;
  const F high = (-0.07636399567127228f * g + 0.12762199342250824f) * s +
                 (-0.1315961331129074f * g + 0.14201581478118896f);
  const F low = (-0.166234090924263f * g + 0.2000124156475067f) * s +
                (-0.2500081956386566f * g + 0.3333333134651184f);
  const F p = high * (s * s) + low;
  *f = g;
  *y = (s * g) * p - 0.5f * s;
}""",
    # what a logarithm is where x is not a positive number
    "log_special": """\
static inline F NAME(F x, F y) {
  const F inf = __builtin_inff() + (F){}, nan = __builtin_nanf("") + (F){};
  return x > 0 ? (x == inf ? inf : y) : (x == 0 ? -inf : nan);
}""",
    "log": f"""\
static inline F NAME(F x) {{
  F e, f, y;
  @log_split(x, &e, &f, &y);
  y = y + e * {LN2_LO};
  return @log_special(x, (f + y) + e * {LN2_HI});
}}""",
    "log2": """\
static inline F NAME(F x) {
  F e, f, y;
  @log_split(x, &e, &f, &y);
  /* log2(e) = 1 + 0.4427…: the large part needs no product */
  const F low = (f + y) * 0.44269504088896341f + y;
  return @log_special(x, (f + low) + e);
}""",
    "log10": """\
static inline F NAME(F x) {
  F e, f, y;
  @log_split(x, &e, &f, &y);
  /* log10(2) in two parts, the first of 10 bits */
  const F low = e * 4.6050389811952137e-6f + y * 0.43429448190325182f;
  return @log_special(x, (f * 0.43429448190325182f + low) + e * 0.301025390625f);
}""",
    # log(u) for u = 1 + x rounded, and what the rounding lost
    "log1p": """\
static inline F NAME(F x) {
  const F u = x + 1.0f, lost = (x - (u - 1.0f)) / u;
  const F inf = __builtin_inff() + (F){}, y = @log(u);
  const I plain = (u == 0) | (x == inf);
  return x == 0 ? x : (plain ? y : y + lost);
}""",
    "tanh": """\
static inline F NAME(F x) {
  const F top = 9.2f + (F){}, a = @min(top, @abs(x)), s = x * x;
  const F q = s * s;
  const F high = -0.005897966679185629f * q + (0.02079862542450428f * s + -0.05378471687436104f);
  const F p = high * q + (0.13331936299800873f * s + -0.33333298563957214f);
  const F small = (s * x) * p + x;
  const F large = 1.0f - @fraction(2.0f + (F){}, @exp_mid(a + a) + 1.0f);
  return @copysign(a >= 0.6f ? large : small, x); /* a NaN is in `small` */
}""",
    # 1 - e^-q with q = -log(erfc(a)) = a + a·P(a): relative accuracy down to 0 by e^r - 1
    "erf": f"""\
static inline F NAME(F v) {{
  const F top = 3.95f + (F){{}}, a = @min(top, @abs(v)); /* a NaN stays */
  const F a2 = a * a, a4 = a2 * a2;
  F q = (0.00011886882566614076f * a + -0.000637382036074996f) * a2 +
        (0.0016756975091993809f * a + -0.00016951498400885612f);
  q = -9.389085789734963e-06f * a4 + q;
  q = q * a4 + ((-0.01914782077074051f * a + 0.10277630388736725f) * a2 +
                (0.6366195678710938f * a + 0.12837916612625122f));
  const F x = -(q * a + a);
{_REDUCE}
{_EXPM1_POLY}
  const F s = (F)(((I)t << 23) + 0x3f800000);
  return @copysign(s * p + (s - 1.0f), v);
}}""",
    # 1 + e loses up to half an ulp; one step with 1/s ~ 1.5 - s/2 takes it back. e is 2^64 times
    # as large until its last rounding: down to the least subnormal number by one factor.
    "sigmoid": f"""\
static inline F NAME(F v) {{
  const F low = -104.0f + (F){{}}, one = 1.0f + (F){{}};
  const F x = @max(low, (F)((I)v | -0x7fffffff - 1)); /* a NaN stays */
{_reduce(_MAGIC_64)}
{_EXP_POLY}
  const F large = (F)(((I)t << 23) + 0x3f800000), e = (p * large + large) * 0x1p-64f;
  const F s = e + one, lost = e - (s - one);
  const F q = @fraction((I)v < 0 ? e : one, s);
  return q - (q * lost) * (1.5f - 0.5f * s);
}}""",
    # sin(x + turn quarter turns); the reduction by pi/2 is done in double
    "sin_turned": """\
static inline F NAME(F x, int turn) {
  const D d = __builtin_convertvector(x, D);
  const D t = d * 0.63661977236758134308 + 6755399441055744.0, k = t - 6755399441055744.0;
  const F r = __builtin_convertvector(
      (d - k * 1.5707963267341256142) - k * 6.0771005065061922e-11, F);
  const I q = __builtin_convertvector((L)t, I) + turn;
  const F s = r * r;
  F a = 2.832724931067787e-06f + (F){};
  a = a * s + -0.00019853073172271252f;
  a = a * s + 0.008333379402756691f;
  a = a * s + -0.1666666716337204f;
  a = (s * r) * a + r;
  F b = -2.887984749122552e-07f + (F){};
  b = b * s + 2.4822014893288724e-05f;
  b = b * s + -0.0013888980029150844f;
  b = b * s + 0.0416666679084301f;
  b = (s * s) * b + (1.0f - 0.5f * s);
  const F y = (q & 1) != 0 ? b : a;
  return (F)((I)y ^ ((q & 2) << 30));
}""",
    # beyond 2^20 the reduction runs out of bits: those lanes go to the C library
    "sin": """\
static inline F NAME(F x) {
  F y = @sin_turned(x, 0);
  const I far = @abs(x) > 1048576.0f;
  y = x == 0 ? x : y;
  if (__builtin_expect(@any(far), 0))
    for (int l = 0; l < LANES; l++) if (far[l]) y[l] = sinf(x[l]);
  return y;
}""",
    "cos": """\
static inline F NAME(F x) {
  F y = @sin_turned(x, 1);
  const I far = @abs(x) > 1048576.0f;
  if (__builtin_expect(@any(far), 0))
    for (int l = 0; l < LANES; l++) if (far[l]) y[l] = cosf(x[l]);
  return y;
}""",
}
"""Text by name."""

DEPENDS: dict[str, tuple[str, ...]] = {
    "exp": ("scale", "min"),
    "exp_falling": ("max",),
    "exp2": ("scale", "min"),
    "expm1": ("scale", "max", "min"),
    "log": ("log_split", "log_special"),
    "log2": ("log_split", "log_special"),
    "log10": ("log_split", "log_special"),
    "log1p": ("log",),
    "tanh": ("abs", "copysign", "exp_mid", "fraction", "min"),
    "erf": ("abs", "copysign", "min"),
    "sigmoid": ("fraction", "max"),
    "sin": ("abs", "any", "sin_turned"),
    "cos": ("abs", "any", "sin_turned"),
}
"""Functions that must stand before one."""
