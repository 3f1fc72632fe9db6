import math

import numpy as np

from kernel_gen.ir.erf import erf


def test_erf_is_that_of_the_c_library() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 2, 20_000), rng.uniform(-8, 8, 20_000), [0.0, 1e-300, 6.0]])
    expected = np.array([math.erf(value) for value in x])
    np.testing.assert_allclose(erf(x), expected, rtol=4e-16, atol=0)


def test_erf_of_specials() -> None:
    found = erf(np.array([math.inf, -math.inf, math.nan, -0.0]))
    assert found[0] == 1.0
    assert found[1] == -1.0
    assert math.isnan(found[2])
    assert math.copysign(1, found[3]) == -1
