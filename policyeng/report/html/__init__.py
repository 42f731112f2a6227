"""The HTML report: a self-contained file to read, sort, filter and print in a browser.

All text passes through `visible` and is escaped. The content security policy allows only the page's own style and
script, by their hashes, and no other loads.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache, partial
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from policyeng.models import Evaluation, Outcome, Severity
from policyeng.report import phrases
from policyeng.report.context import ReportContext
from policyeng.report.escaping import visible
from policyeng.report.frameworks import HTML_FUNCTIONS
from policyeng.report.html.sections import (
    HtmlFindings,
    break_down,
    compliance_chart,
    describe_result,
    escape_unprintable,
    format_time,
    group_controls,
    link,
    list_facts,
    name_report,
    prose,
    severity_chart,
)
from policyeng.report.locations import field_address, find_other_location, place
from policyeng.report.phrases import settings_text

#: How many passes are listed; the page shows the number of the others.
LISTED_PASSES = 20_000
#: The paths of the history server: the list of estates, and signing in and out.
HOME, SIGN_IN, SIGN_OUT = "/", "/sign-in", "/sign-out"


def render(
    evaluation: Evaluation,
    *,
    group_by: str | None = None,
    profile: str | None = None,
    about: ReportContext | None = None,
    served: bool = False,
) -> str:
    """Return the page.

    Args:
        evaluation: the evaluation to report. Its summary can count more passes than it lists, as in a report on many
            parts; the page shows how many are not listed.
        group_by: the initial grouping, `resource` or `policy`.
        profile: the name of the parameter profile of the evaluation.
        about: owners, areas and controls to filter by, and the history of an estate.
        served: whether a server shows it, with links to other reports and to sign out.
    """
    context = about or ReportContext()
    trend = context.trend
    points = trend.points if trend and len(trend.points) > 1 else ()
    style, script = _asset("page.css"), _asset("page.js")
    findings = HtmlFindings(evaluation, context, LISTED_PASSES)
    text = (
        _environment()
        .get_template("page.html")
        .render(
            evaluation=evaluation,
            name=name_report(evaluation, context),
            result=describe_result(evaluation),
            facts=list_facts(evaluation, context, profile),
            findings=findings,
            breakdowns=break_down(findings),
            group_by=group_by or "",
            profile=profile,
            about=context,
            trend=trend,
            points=points,
            charts=(compliance_chart(points), severity_chart(points)) if points else (),
            style=style,
            script=script,
            policy=content_security_policy(style, script, served=served),
            served=served,
        )
    )
    return text.rstrip("\n") + "\n"


def content_security_policy(style: str, script: str, *, served: bool) -> str:
    """Return a content security policy that allows only the style and script of the page, by their hashes."""
    forms = "'self'" if served else "'none'"
    allowed = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'" if script else f"style-src '{_hash(style)}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action {forms}"


def page(template: str, **values: object) -> str:
    """Return a server page in the same style, without a script, such as the list of estates."""
    style = _asset("page.css")
    policy = content_security_policy(style, "", served=True)
    text = _environment().get_template(template).render(style=style, policy=policy, **values)
    return text.rstrip("\n") + "\n"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _asset(name: str) -> Markup:
    """Read a file of this package, which needs no escaping."""
    return Markup(files(__name__).joinpath(name).read_text(encoding="utf-8"))  # noqa: S704  # our own file


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_unprintable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        prose=prose,
        link=link,
        by_framework=group_controls,
        clock=format_time,
        short=phrases.shorten_id,
        day=lambda moment: phrases.in_utc(moment).date().isoformat(),
        named=phrases.format_name,
        count=phrases.count,
        place=place,
        grouped="{:,}".format,
    )
    environment.globals.update(
        visible=visible,
        denials=phrases.denials,
        unknowns=phrases.unknowns,
        parted=phrases.split_reason,
        has_values=phrases.has_values,
        describe_found=phrases.describe_found,
        describe_value=phrases.describe_value,
        field_address=field_address,
        exemption_sentence=phrases.exemption_sentence,
        settings_text=settings_text,
        headline=phrases.describe_counts,
        elsewhere=find_other_location,
        shown_path=phrases.format_path,
        severities=tuple(reversed(Severity)),
        passed=Outcome.PASS,
        failed=Outcome.FAIL,
        home=HOME,
        sign_in=SIGN_IN,
        sign_out=SIGN_OUT,
        rounded=partial(round, ndigits=2),
        **HTML_FUNCTIONS,
    )
    return environment
