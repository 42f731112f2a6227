"""Discovery of the policies among the files of a bundle."""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]  # what importlib calls for moved files
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from types import ModuleType

from policyeng.bundle import evidence_policies
from policyeng.bundle.analysis import ModuleAnalysis
from policyeng.bundle.files import text_of
from policyeng.bundle.header import PolicyHeader, rego_metadata
from policyeng.bundle.header_cache import Headers, ModuleHeader
from policyeng.bundle.manifest import manifest_of
from policyeng.bundle.policy_types import Declaration, Functions, Policy, PythonPolicy, Role
from policyeng.bundle.python_output import printing_to_standard_error
from policyeng.errors import BundleError
from policyeng.frozen import replace

_ROLES: tuple[Role, ...] = ("applies", "deny", "unknown")


def policies_of(root: Path, tree: Mapping[PurePosixPath, bytes]) -> list[Policy]:
    """Return the policies among the files of one root, Python twins joined to their Rego policies.

    Raises:
        BundleError: a module or header is not well formed.
    """
    headers = Headers(tree)
    manifest = manifest_of(tree, root)
    rego: dict[PurePosixPath, Policy] = {}
    for path, content in sorted(tree.items()):
        if path.suffix == ".rego":
            source = text_of(content, root / path)
            analysis = headers.analysis(source, manifest.is_v0(path), str(root / path))
            if found := _rego_policy(root, path, source, analysis, headers):
                rego[path.with_suffix("")] = found
    policies = dict(rego)
    for path, content in sorted(tree.items()):
        if path.suffix == ".py" and b"policyeng" in content and b"policy" in content.replace(b"policyeng", b""):
            stem = path.with_suffix("")
            policies[stem] = _python_policy(root, path, content, rego.get(stem), headers)
    headers.keep()
    return list(policies.values())


def _rego_policy(
    root: Path, path: PurePosixPath, source: str, analysis: ModuleAnalysis, headers: Headers
) -> Policy | None:
    place = str(root / path)
    metadata = rego_metadata(source)
    try:
        header = headers.of_metadata(metadata, place) if metadata is not None else None
    except BundleError as error:
        raise _with_line(error, source, place) from error
    if header is None:
        return None
    defined = {rule.name for rule in analysis.rules}
    if header.evidence:
        if defined:
            message = f"the header states `evidence: true`, and the policy defines the rule `{min(defined)}`"
            raise BundleError(message, place=(place,), remedy="remove the rule or `evidence: true`")
        return Policy(header, _area(path), path.stem, str(path), python=_on_evidence(header), cases=_cases(root, path))
    if "deny" not in defined:
        raise BundleError(
            "the policy defines no `deny` rule", place=(place,), remedy="add `deny contains {...} if ...`"
        )
    rules = tuple((role, f"data.{analysis.package}.{role}") for role in _ROLES if role in defined)
    return Policy(header, _area(path), path.stem, str(path), rules=rules, cases=_cases(root, path))


def _on_evidence(header: PolicyHeader) -> PythonPolicy:
    """Return the form of a policy that only evidence decides."""
    run = partial(evidence_policies.functions_for, header.id)
    return PythonPolicy(run, evidence_policies.REQUIRED in header.parameters, evidence_policies.READS)


def _with_line(error: BundleError, source: str, place: str) -> BundleError:
    """Return the error of a header with the line of the key that it names, where the text has it."""
    named = re.search(r"`([\w.]+)`", error.message)
    line = named and re.search(rf"^(#[ \t]*(?:- )?){re.escape(named[1].partition('.')[0])}:.*", source, re.MULTILINE)
    if not line or error.place[:1] != (place,):
        return error
    number, column = source.count("\n", 0, line.start()) + 1, len(line[1]) + 1
    shown = f"{error.message}{f'; {error.remedy}' if error.remedy else ''}\n  {line[0]}\n  {' ' * len(line[1])}^"
    return BundleError(shown, place=(f"{place}:{number}:{column}", *error.place[1:]))


def _python_policy(root: Path, path: PurePosixPath, content: bytes, twin: Policy | None, headers: Headers) -> Policy:
    place = str(root / path)
    stated = headers.of_module(content, place, is_twin=twin is not None)
    run = partial(_functions_of, path, content, place, stated, headers.code_of(content, place))
    python = PythonPolicy(run, stated.has_applies, content)
    if twin is not None:
        return replace(twin, python=python)
    assert stated.header is not None  # noqa: S101  # only twins have none
    if stated.header.evidence:
        message = "the header states `evidence: true`, and the policy has a function"
        raise BundleError(message, place=(place,), remedy="write the header in a `.rego` file without rules")
    return Policy(stated.header, _area(path), path.stem, str(path), python=python, cases=_cases(root, path))


def compiled_module(policy: Policy) -> tuple[str, bytes] | None:
    """Return the file of a Python policy or twin, and its code as `marshal` has it; None for another policy."""
    run = policy.python.run if policy.python is not None else None
    return (str(run.args[0]), run.args[-1]) if isinstance(run, partial) and run.func is _functions_of else None


def _functions_of(
    path: PurePosixPath, content: bytes, place: str, stated: ModuleHeader, code: bytes | None
) -> Functions:
    """Run a module for the functions of the policy that it declares."""
    module = _execute(path, content, place, code)
    declared = [value for value in vars(module).values() if hasattr(value, "__policy__")]
    if len(declared) != 1:
        what = f"{len(declared)} functions carry `@policy(...)` once the module has run"
        raise BundleError(what, place=(place,), remedy="declare exactly one")
    declaration: Declaration = declared[0].__policy__
    if not stated.is_of(declaration.fields) or stated.has_applies != (declaration.applies is not None):
        remedy = "leave its constants as they are first assigned"
        raise BundleError("the header is another one once the module has run", place=(place,), remedy=remedy)
    return Functions(declared[0], declaration.applies)


def _execute(path: PurePosixPath, content: bytes, place: str, code: bytes | None) -> ModuleType:
    """Run a policy's module without writing compiled files next to it."""
    module = ModuleType(f"policyeng_policy_{hashlib.sha256(content).hexdigest()[:16]}_{path.stem}")
    module.__file__ = place
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    try:
        with printing_to_standard_error:
            made = compile(content, place, "exec") if code is None else marshal.loads(code)  # noqa: S302  # from a private file, its digest verified, or of the wheel
            _fix_co_filename(made, place)
            exec(made, module.__dict__)  # noqa: S102  # policies are trusted code, ADR 5
    except (Exception, SystemExit) as error:
        raise BundleError(f"the module cannot be loaded: {type(error).__name__}: {error}", place=(place,)) from error
    return module


def _area(path: PurePosixPath) -> str:
    return path.parts[0] if len(path.parts) > 1 else ""


def _cases(root: Path, path: PurePosixPath) -> Path | None:
    cases = root / path.parent / "cases.yaml"
    return cases if cases.is_file() else None
