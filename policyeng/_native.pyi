"""The native engine: Rego judged in parallel and under limits, and strict JSON, all with the GIL released."""

from collections.abc import Sequence, Set
from typing import Final, Literal, final

FaultKind = Literal["deadline", "memory", "instructions", "builtin", "conflict", "panic", "evaluation"]
RefusalKind = Literal["utf8", "bom", "syntax", "duplicate-key", "nan", "depth", "trailing", "empty", "number"]
Outcome = bytes | Literal[False] | tuple[FaultKind, str] | None

ENGINE_VERSION: Final[str]
"""The version of regorus, the engine inside."""
BUILD: Final[str]
"""Names the sources that this module was built from; stored programs of another build are not to be loaded."""
HOST_BUILTINS: Final[list[str]]
"""Builtins that no policy may name: they reach for the host, the network, the clock or chance, or read modules."""

@final
class Documents:
    """A snapshot, parsed once and shared by all pairs; its length is the number of subjects."""

    def __new__(cls, snapshot: bytes) -> Documents:
        """Parse a snapshot: the bytes of a JSON object that holds at least the list `resources`.

        Subjects are numbered through resources, workloads, approvals, documents. Raises ValueError for anything else,
        and for documents nested deeper than 132 levels.
        """

    def __len__(self) -> int: ...
    def changed(
        self,
        splices: Sequence[tuple[str, int, int, Sequence[bytes]]],
        entries: Sequence[tuple[Sequence[str], bytes | None]],
    ) -> Documents:
        """A changed copy, which shares with this one all that stays.

        Splices are (collection, start, number of members that go, JSON of those that come), made one after the other;
        `by_id` and `by_type` follow the resources. Entries are (path from the snapshot to a member of an index, its
        JSON, or None where it goes and with it what it leaves empty). Raises ValueError for what does not fit.
        """

@final
class Parameters:
    """The parameters of all policies, parsed once."""

    def __new__(cls, texts: Sequence[bytes]) -> Parameters:
        """Parse one JSON object per policy. Raises ValueError for anything else."""

@final
class Program:
    """A bundle, compiled once for both engines."""

    def __new__(
        cls,
        modules: Sequence[tuple[str, str]],
        facts: bytes,
        policies: Sequence[tuple[str, Sequence[tuple[str, str]]]],
        interpreter: bool = False,
        rego_v0: Set[str] = ...,
        forms: Sequence[str] = ...,
    ) -> Program:
        """Compile modules (path, Rego source), facts (JSON, becomes `data`) and policies (id, [(role, rule path)]).

        A role is `applies`, `deny`, `unknown` or `exception`. `interpreter` makes the interpreter judge every policy.
        `rego_v0` holds the paths of modules in Rego v0; `forms` says per policy what `input` is: `policy`, `document`
        (the subject itself) or `review` (the subject under Gatekeeper's review). Raises ValueError with path, line and
        column when something does not compile or reaches for the host.
        """

    @staticmethod
    def load(
        stored: Sequence[bytes],
        facts: bytes,
        policies: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    ) -> Program:
        """The program that `dump` gave these bytes, with the facts and policies that it was made with.

        The bytes decide what is judged: they must come from a place that nobody else can write to. What `input` is for
        a policy is not in them; it is `policy` for all. Raises ValueError when they cannot be read or do not have the
        rules of the policies.
        """

    def dump(self) -> list[bytes] | None:
        """One program per policy as bytes; None when the interpreter judges some policy, or after `load`."""

    @property
    def engines(self) -> list[tuple[str, str]]:
        """Per policy ("rvm", "") or ("interpreter", why)."""

    def judge(
        self,
        documents: Documents,
        pairs: Sequence[tuple[int, int, int]],
        parameters: Parameters | Sequence[bytes],
        as_of: str,
        *,
        threads: int = 1,
        deadline_ms: int = 1000,
        memory_mb: int = 256,
        instructions: int = 50_000_000,
    ) -> list[Outcome]:
        """Judge pairs (policy, subject, workspace subject or -1) and give their outcomes in order.

        `parameters` holds one JSON object per policy. None: nothing denied, nothing unknown; False: the policy does
        not apply; bytes: JSON {"deny": [...], "unknown": [...]}, with "exception" where it names
        rules; (kind, message): why there is no outcome. Raises IndexError for an index out of range and ValueError for
        parameters that are no JSON object.
        """

def check_json(document: bytes, max_depth: int = 128) -> tuple[RefusalKind, str, int, int] | None:
    """Validate a JSON document strictly: None, or (kind, JSON Pointer, line, column) of what is wrong first.

    Lines and columns count from 1, columns in characters.
    """

def locate(document: bytes, pointers: Sequence[str]) -> list[tuple[int, int] | None]:
    """Line and column (from 1) of the value at each JSON Pointer of a good document, None where there is none."""

def outline(
    path: str, source: str, rego_v0: bool | None = None
) -> tuple[bool, str, list[tuple[str, str, int]], list[str]]:
    """Read a module without compiling it: (is Rego v0, package, rules as (name, form, line), what it reads).

    `rego_v0` is the version where a manifest says it; else a module that reads as v1 is v1, and any other v0. Reads are
    references to `input` and `data`. Raises ValueError when it does not parse.
    """

def as_v1(modules: Sequence[tuple[str, str]], rego_v0: Set[str]) -> list[tuple[str, str]]:
    """The modules (path, source) with those in Rego v0 written as v1, and one that answers for builtins v1 dropped.

    Raises ValueError, with path and line, for what cannot be written as v1.
    """

def syntax(path: str, source: str, rego_v0: bool = False) -> bytes:
    """The rules of a module as regorus parsed them: JSON, in which every node has a `span` with `start` and `end`.

    They count bytes. Texts have them without their quotes. Raises ValueError when it does not parse.
    """
