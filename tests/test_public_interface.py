"""The public interface: short, sorted, guarded, and cheap to import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grimp
import pytest

import policyeng
from policyeng import Denial, Exemption, errors


def test_every_public_name_exists_and_no_more() -> None:
    """`__all__` is sorted, complete, and what `dir` shows."""
    assert policyeng.__all__ == sorted(policyeng.__all__)
    assert dir(policyeng) == policyeng.__all__
    for name in policyeng.__all__:
        assert getattr(policyeng, name).__doc__


def test_documented_names_of_earlier_versions_stay() -> None:
    """Programs that import a class by the name that an earlier edition documented keep working."""
    from policyeng.admission import AdmissionSession, Basis
    from policyeng.verify.drawing.examples import Examples
    from policyeng.verify.generators import examples

    assert Basis is AdmissionSession
    assert Examples is examples.Examples


def test_an_unknown_name_is_an_attribute_error() -> None:
    """What is not public is not there."""
    with pytest.raises(AttributeError, match="has no attribute `manage`"):
        _ = policyeng.manage


def test_importing_costs_nothing() -> None:
    """The names are loaded when first used."""
    program = "import sys, policyeng; print('pydantic' in sys.modules, 'orjson' in sys.modules)"

    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        == "False False\n"
    )


def test_evaluate_reads_the_clock_only_on_request(root: Path) -> None:
    """Without `as_of` an evaluation is of now, with one it is of then."""
    snapshot = policyeng.load_snapshot(root / "samples/workspaces/compliant.json")
    bundle = policyeng.load_bundle()
    then = datetime(2026, 6, 1, tzinfo=UTC)

    assert datetime.now(UTC) - policyeng.evaluate(bundle, snapshot).as_of < timedelta(minutes=1)
    assert policyeng.evaluate(bundle, snapshot, as_of=then).as_of == then


def test_the_error_tree_is_the_documented_one() -> None:
    """Every class of the tree is in its docstring with its exit code, and there are few."""
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    own = [kind for kind in classes if issubclass(kind, errors.PolicyengError)]

    assert len(own) <= 6
    for kind in own:
        assert f"{kind.__name__} " in (errors.__doc__ or "")
        assert kind.exit_code in (2, 3)


def test_an_error_names_place_and_remedy() -> None:
    """The text runs from the place over the message to the remedy."""
    error = errors.InputError("not JSON", place=("a.json:3", "", "/x"), remedy="correct it")

    assert str(error) == "a.json:3: /x: not JSON; correct it"
    assert errors.suggest_nearest("netwrk", ["network", "cost"]) == "; did you mean `network`"
    assert errors.suggest_nearest("zzz", ["network"]) == ""


@pytest.mark.slow
def test_the_code_has_no_fault_that_is_counted(root: Path) -> None:
    """CONTRIBUTING.md lists what `tests/quality.py` finds."""
    ran = subprocess.run([sys.executable, "-m", "tests.quality"], capture_output=True, text=True, check=False, cwd=root)

    assert ran.returncode == 0, ran.stdout


def test_a_reason_takes_its_message_and_path_without_names() -> None:
    """Anything else without a name, or given twice, is refused and not dropped."""
    assert Denial("m", "/x", actual=1) == Denial(msg="m", path="/x", actual=1)
    given: tuple[tuple[tuple[object, ...], dict[str, object]], ...] = ((("m", "/x", 1), {}), (("m",), {"msg": "n"}))
    make: Callable[..., Denial] = Denial
    for values, fields in given:
        with pytest.raises(TypeError, match=r"(?i)argument"):
            make(*values, **fields)


def test_an_exemption_has_times_with_a_zone() -> None:
    """Without one nothing states when it begins and ends; `Exemption.model_validate` reads text."""
    texts = {"id": "e", "policy": "P-1", "scope": "/s", "category": "waiver", "reason": "r", "owner": "o"}
    texts |= {"approved_by": "p", "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-02-01T00:00:00Z"}
    make: Callable[..., Exemption] = Exemption
    assert Exemption.model_validate(texts).created_at == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(TypeError, match="a datetime with a zone"):
        make(**texts)


def test_modules_of_rego_need_each_other_in_no_circle() -> None:
    """Not for types alone, either, which contracts on imports leave out; and they need nothing else of policyeng."""
    graph = grimp.build_graph("policyeng", exclude_type_checking_imports=False, cache_dir=None)
    modules = {name for name in graph.modules if name.startswith("policyeng.rego.")}
    circles = []
    for name in modules:
        needed = graph.find_modules_directly_imported_by(name)
        assert needed <= modules | {"policyeng.rego"}, name
        circles += [(name, other) for other in needed if graph.chain_exists(importer=other, imported=name)]
    assert circles == []
