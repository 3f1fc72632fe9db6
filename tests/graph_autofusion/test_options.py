"""Arguments of `optimize` are checked before anything happens."""

from __future__ import annotations

import pytest
import torch

import graph_autofusion as gaf
from graph_autofusion.options import OnMiss, parse_budget, parse_options, rules_text
from kernel_gen.errors import InvalidInput, InvalidRules, Unavailable


def _options(environ: dict[str, str] | None = None, **changes):
    return parse_options(**changes, environ=environ or {})


def test_defaults_are_a_minute_here_without_a_service():
    options = _options()
    assert options.budget.seconds == 60
    assert options.on_miss is OnMiss.TUNE
    assert options.service is None


def test_an_npu_without_its_software_names_the_simulator():
    with pytest.raises(Unavailable, match="ascend-sim:910b3"):
        _options(device="ascend:0")


def test_a_simulated_npu_is_a_device():
    assert _options(device="ascend-sim:910b3").device == "ascend-sim:910b3"


def test_a_service_changes_the_default_on_miss():
    options = _options({"GAF_SERVICE": "http://127.0.0.1:1"})
    assert options.on_miss is OnMiss.QUEUE
    assert options.service == "http://127.0.0.1:1"


def test_an_argument_wins_over_the_environment():
    assert _options({"GAF_STORE": "sqlite:///a"}, store="sqlite:///b").store == "sqlite:///b"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"device": "cuda"}, "unknown"),
        ({"device": "ascend-sim:910b9"}, "unknown Ascend chip '910b9'"),
        ({"device": "ascend:x"}, "unknown"),
        ({"numerics": "loose"}, "'fast' or 'strict'"),
        ({"on_miss": "guess"}, "'tune', 'queue', 'eager', 'error'"),
        ({"budget": -1}, "expected 0 to"),
        ({"budget": "soon"}, "expected seconds"),
        ({"budget": True}, "expected seconds"),
        ({"training": True}, "training=True"),
        ({"rules": "does-not-exist.yaml"}, "does-not-exist.yaml"),
        ({"rules": "no\0file"}, "null"),
        ({"rules": 5}, "expected a file, YAML text or a mapping"),
        ({"rules": {"rules": object()}}, "YAML cannot hold"),
        ({"device": 3}, "unknown"),
        ({"store": 5}, "store is 5: expected a URL"),
        ({"store": "mysql://x/y"}, "expected sqlite:///FILE or postgresql://"),
        ({"service": "nonsense"}, "service is 'nonsense': expected http://"),
        ({"service": 5}, "service is 5: expected http://HOST:PORT"),
        ({"store": "sqlite://"}, "name a file"),
        ({"store": "sqlite:///:memory:"}, "name a file"),
        ({"store": "sqlite:////tmp"}, "a folder, not a file"),
        ({"store": "postgresql://host:port/x"}, "store is 'postgresql://host:port/x': Port could"),
        ({"store": "plans.db"}, "store is 'plans.db': expected sqlite:///FILE"),
    ],
)
def test_a_wrong_argument_says_what_was_expected(changes, says):
    with pytest.raises(InvalidInput, match=says):
        _options(**changes)


def test_a_budget_may_be_seconds_or_a_budget():
    assert parse_budget(5) == gaf.Budget(5.0)
    assert parse_budget(gaf.Budget(seconds=1, trials=3)).trials == 3


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(InvalidInput, match="neither a module nor a function"):
        gaf.optimize(3)


def test_torchs_own_name_of_the_cpu_is_a_device() -> None:
    assert parse_options(device=torch.device("cpu"), environ={}).device == "cpu"


def test_rules_of_one_line_are_yaml_where_no_file_has_their_name() -> None:
    with pytest.raises(InvalidRules, match="line 1"):
        rules_text("foo: [")
    with pytest.raises(InvalidInput, match="No such file"):
        rules_text("no-such-rules.yaml")
