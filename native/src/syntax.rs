//! The syntax tree of a module, for those who change its text at exact places.

use crate::ast::refuse_deep_nesting;
use crate::outline::parsed;
use crate::stack::on_a_deep_stack;

/// The rules of a module as regorus parsed them, as JSON; every node has a `span` with the bytes where it starts and ends.
///
/// # Errors
/// The message of the parser, with path and line.
pub fn syntax(path: &str, source: &str, v0: bool) -> Result<String, String> {
    refuse_deep_nesting(path, source)?;
    on_a_deep_stack(|| Ok(parsed(path, source, v0)?.rules.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desugar::{kind_of, offset};
    use serde_json::Value as Json;

    #[test]
    fn every_expression_says_where_it_stands() {
        let source = "package p\n# \u{e9}\ndeny contains m if {\n\tm := \"no\"\n\tinput.a.b >= 3\n}\n";
        let rules: Json = serde_json::from_str(&syntax("p.rego", source, false).unwrap()).unwrap();
        let statements = &rules[0]["Spec"]["bodies"][0]["query"]["stmts"];
        let compared = kind_of(&statements[1]["literal"]["Expr"]["expr"]).1;
        assert_eq!(&source[offset(compared, "start")..offset(compared, "end")], "input.a.b >= 3");
        let bound = kind_of(&compared["rhs"]).1;
        assert_eq!(&source[offset(bound, "start")..offset(bound, "end")], "3");
    }

    #[test]
    fn what_does_not_parse_is_refused_with_its_place() {
        assert!(syntax("p.rego", "package p\nx :=", false).unwrap_err().starts_with("p.rego:2:"));
        assert!(syntax("p.rego", "package p\nx[y] { y = 1 }", false).is_err());
        assert!(syntax("p.rego", "package p\nx[y] { y = 1 }", true).is_ok());
    }
}
