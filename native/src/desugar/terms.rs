//! Questions to the parts of a parsed module.

use serde_json::Value as Json;
use std::collections::HashSet;

/// Whether a term is a constant of one value.
pub(super) fn plain(term: &Json) -> bool {
    matches!(kind_of(term).0, "String" | "RawString" | "Number" | "Bool" | "Null")
}

/// Whether a query stands in braces of its own.
pub(super) fn braced(query: &Json) -> bool {
    query["stmts"].get(0).is_none_or(|first| offset(first, "start") != offset(query, "start"))
}

/// Where a node starts or ends in the text.
#[must_use]
pub fn offset(node: &Json, side: &str) -> usize {
    node["span"][side].as_u64().and_then(|offset| usize::try_from(offset).ok()).unwrap_or_default()
}

/// The kind of an expression or literal and what it is made of.
pub fn kind_of(node: &Json) -> (&str, &Json) {
    node.as_object()
        .and_then(|fields| fields.iter().next())
        .map_or(("", &Json::Null), |(kind, inner)| (kind.as_str(), inner))
}

/// Whether a term is a name of ours.
pub(super) fn generated(node: &Json) -> bool {
    node["Var"]["value"].as_str().is_some_and(|name| name.starts_with("__"))
}

/// The operands that OPA takes out of a negated expression: references and calls that it hands to a function.
pub(super) fn hoisted<'a>(node: &'a Json, names: &HashSet<String>, operands: &mut Vec<&'a Json>) {
    let (kind, inner) = kind_of(node);
    let equality = kind == "AssignExpr" || kind == "BoolExpr" && inner["op"] == "Eq";
    let parts: Vec<&Json> = match kind {
        "Call" => inner["params"].as_array().map_or_else(Vec::new, |params| params.iter().collect()),
        "BoolExpr" | "ArithExpr" | "BinExpr" | "AssignExpr" => vec![&inner["lhs"], &inner["rhs"]],
        "Membership" => vec![&inner["key"], &inner["value"], &inner["collection"]],
        _ => return,
    };
    for part in parts {
        let (kind, inner) = kind_of(part);
        let take = match kind {
            "Call" | "ArithExpr" | "BinExpr" | "Membership" | "BoolExpr" => true,
            "RefDot" | "RefBrack" => !equality && !iterates(part),
            "Var" => !equality && inner["value"].as_str().is_some_and(|name| names.contains(name)),
            _ => false,
        };
        if take {
            operands.push(part);
        }
    }
}

/// Whether a reference runs over a collection by a wildcard.
pub(super) fn iterates(node: &Json) -> bool {
    let (kind, inner) = kind_of(node);
    match kind {
        "RefBrack" => inner["index"]["Var"]["value"] == "_" || iterates(&inner["refr"]),
        "RefDot" => iterates(&inner["refr"]),
        _ => false,
    }
}
